package term

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// An Output is stdout for the commands that print. It keeps the first error of a write: half a
// report with exit status 0 would look like a whole one, and few callers that print a line
// check the error.
type Output struct {
	To     io.Writer
	Failed error // of the first write that went wrong
}

func (o *Output) Write(b []byte) (int, error) {
	n, err := o.To.Write(b)
	if err != nil {
		err = fmt.Errorf("what there was to print could not be written: %w: make room, or print to another place", cli.Reason(err))
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
