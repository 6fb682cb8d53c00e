package child

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// TryWrite writes a line completely or not at all.
func TestTryWrite(t *testing.T) {
	p, err := Start(context.Background(), Options{Argv: []string{"sh", "-c", "read first; cat"}, Env: []string{"PATH=/usr/bin:/bin"}})
	check(t, err)
	defer p.Stop(context.Background())
	input := p.Upstream().Stdin().(*Input)
	line := append(bytes.Repeat([]byte("x"), 999), '\n')
	n := 0
	for {
		written, err := input.TryWrite(line)
		check(t, err)
		if !written {
			break
		}
		n++
	}
	if written, err := input.TryWrite(make([]byte, atomicWrite+1)); written || err != nil {
		t.Errorf("TryWrite of more than PIPE_BUF: %v, %v", written, err)
	}
	got := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(p.Stdout())
		got <- b
	}()
	if _, err := input.Write([]byte("end\n")); err != nil { // blocks
		t.Fatal(err)
	}
	p.CloseStdin()
	if want := append(bytes.Repeat(line, n-1), "end\n"...); !bytes.Equal(<-got, want) {
		t.Errorf("the process did not read the %d lines that were written", n)
	}
	if _, err := input.TryWrite(line); err == nil {
		t.Error("a write to a closed input succeeded")
	}
}
