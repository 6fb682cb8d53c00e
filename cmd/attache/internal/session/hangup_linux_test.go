package session

import (
	"io"
	"os"
	"testing"
)

// The end of a client is seen before what it said last is read.
func TestHungUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
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

// Of a file there is no other end.
func TestHungUpOfAFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if hungUp(f) != nil {
		t.Error("a device can hang up")
	}
}
