//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
)

// TestForker has one thread start some processes. Each goes on when another ends.
func TestForker(t *testing.T) {
	f := NewForker()
	defer f.Close()
	o := sh("read -r line; echo $line")
	o.Forker = f
	first, second := start(t, o), start(t, o)
	first.Stdin().WriteString("first\n")
	expect(t, lines(first), "first")
	if exit := first.Wait(); exit.Status() != 0 {
		t.Fatal(exit)
	}
	second.Stdin().WriteString("second\n")
	expect(t, lines(second), "second")
	if exit := second.Wait(); exit.Status() != 0 {
		t.Fatal(exit)
	}
}

// TestForkerClosed has a thread end that has started a process. On Linux and FreeBSD the
// process ends with it, and nowhere is another one started.
func TestForkerClosed(t *testing.T) {
	f := NewForker()
	o := sh("echo begun; exec sleep 1000")
	o.Forker = f
	p := start(t, o)
	expect(t, lines(p), "begun")
	f.Close()
	f.Close()
	if runtime.GOOS == "linux" || runtime.GOOS == "freebsd" {
		if exit := p.Wait(); exit.Status() != 128+9 {
			t.Error(exit)
		}
	}
	if _, err := Start(context.Background(), o); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v, want %v", err, os.ErrClosed)
	}
}
