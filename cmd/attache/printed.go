package main

import (
	"fmt"
	"io"
)

// A printed is stdout for the commands that print. It remembers that something could
// not be written, since half a report with exit status 0 would pass for a whole one,
// and few who print a line look at the error.
type printed struct {
	to     io.Writer
	failed error // of the first write that went wrong
}

func (o *printed) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if err != nil {
		err = fmt.Errorf("what there was to print could not be written: %w: make room, or print to another place", reason(err))
		if o.failed == nil {
			o.failed = err
		}
	}
	return n, err
}
