package logging

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestStderrSinkWritesInOrder(t *testing.T) {
	var out bytes.Buffer
	s := NewSink(&out)
	for i := range 3 {
		fmt.Fprintln(s, i)
	}
	s.Close()
	s.Close()
	fmt.Fprintln(s, "too late")
	if got := out.String(); got != "0\n1\n2\n" {
		t.Errorf("wrote %q", got)
	}
}

// TestStderrSinkNeverBlocks writes more than fits to a stderr nobody reads.
func TestStderrSinkNeverBlocks(t *testing.T) {
	r, w := io.Pipe()
	s := NewSink(w)
	for range 2 * sinkLines {
		fmt.Fprintln(s, "line")
	}
	read := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		read <- string(b)
	}()
	s.Close()
	w.Close()
	if got := <-read; strings.Count(got, "line\n") > 2*sinkLines-1 || got == "" {
		t.Errorf("%d lines came through of %d", strings.Count(got, "line\n"), 2*sinkLines)
	}
}
