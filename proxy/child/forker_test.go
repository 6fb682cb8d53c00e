//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// TestForker starts processes on one thread. A process keeps running when another one ends.
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

// TestForkerClosed closes a Forker that has started a process. On Linux and FreeBSD the
// process ends with the thread. No system can start another process with the Forker.
func TestForkerClosed(t *testing.T) {
	f := NewForker()
	if onFirstThread(t, f) {
		defer f.Close() // until closed, it keeps that thread from the next Forker
		f = NewForker()
	}
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

// onFirstThread reports whether a Forker uses the first thread of the process, which ends only
// with the process.
func onFirstThread(t *testing.T, f *Forker) (first bool) {
	t.Helper()
	err := f.do(func() error {
		self, err := os.Readlink("/proc/thread-self") // PROCESS/task/THREAD, only on Linux
		first = err == nil && filepath.Base(self) == strconv.Itoa(os.Getpid())
		return nil
	})
	check(t, err)
	return first
}
