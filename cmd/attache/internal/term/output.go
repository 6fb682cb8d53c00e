package term

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// An Output is stdout for commands that print. It stores the first write error, because few callers check
// the error of printing a line, and half a report with exit status 0 would look complete.
type Output struct {
	To     io.Writer
	Failed error // the first write error
}

func (o *Output) Write(b []byte) (int, error) {
	n, err := o.To.Write(b)
	if err != nil {
		err = fmt.Errorf("the output could not be written: %w: make room, or print to another place", cli.Reason(err))
		o.Failed = cmp.Or(o.Failed, err)
	}
	return n, err
}

// WriteJSON writes v as indented JSON.
func WriteJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// HasColour reports whether to write colours to w: w is a terminal, and the user has not disabled colours
// (no-color.org).
func HasColour(getenv func(string) string, w io.Writer) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && IsTerminal(w)
}

// IsTerminal reports whether a stream of the process, or that under an [Output], is a terminal.
func IsTerminal(stream any) bool {
	if out, ok := stream.(*Output); ok {
		stream = out.To
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && term.IsTerminal(int(f.Fd()))
}

// Table writes rows with their columns aligned. An empty cell is shown as a dash.
func Table(out io.Writer, rows [][]string) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = cli.Printable(cell); cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // to memory, cannot fail
	_, err := io.WriteString(out, text.String())
	return err
}
