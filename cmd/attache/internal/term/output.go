package term

import (
	"encoding/json"
	"fmt"
	"io"

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
		if o.Failed == nil {
			o.Failed = err
		}
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
