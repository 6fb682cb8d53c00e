package term

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

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
