package session

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A hang-up is reported before the remaining data is read.
func TestHungUp(t *testing.T) {
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	gone := hungUp(r)
	if _, err := w.WriteString("unread"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Fatal("gone with the other end open")
	default:
	}
	w.Close()
	<-gone
	if said, err := io.ReadAll(r); err != nil || string(said) != "unread" {
		t.Errorf("what was written: %q, %v", said, err)
	}
}

// A file has no other end.
func TestHungUpOfAFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	check(t, err)
	defer f.Close()
	if hungUp(f) != nil {
		t.Error("a device can hang up")
	}
}

// For a pipe and for a pair of sockets, as Node makes them, the function reports without a write
// whether the other end reads. One that has only shut down its write side may still read.
func TestReads(t *testing.T) {
	r, w, err := os.Pipe()
	check(t, err)
	defer w.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	check(t, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	check(t, unix.Shutdown(pair[1], unix.SHUT_WR))
	for _, c := range []struct{ ours, theirs *os.File }{{w, r}, {ours, theirs}} {
		reads := reads(c.ours)
		if !reads() {
			t.Errorf("%s: nobody reads, with the other end open", c.ours.Name())
		}
		c.theirs.Close()
		if reads() {
			t.Errorf("%s: somebody reads, with the other end closed", c.ours.Name())
		}
	}
}

// For a file and for a network connection it is not known whether the other end reads.
func TestReadsUnknown(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	check(t, err)
	defer f.Close()
	if reads(f) != nil {
		t.Error("a file can hang up")
	}
}
