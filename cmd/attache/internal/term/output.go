package term

import (
	"fmt"
	"io"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// A Output is stdout for the commands that print. It remembers that something could
// not be written, since half a report with exit status 0 would pass for a whole one,
// and few who print a line look at the error.
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
