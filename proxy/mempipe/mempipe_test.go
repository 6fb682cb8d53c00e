package mempipe

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4)
		go func() { p.Write([]byte("one\ntwo\n")); p.CloseWrite() }()
		p.AwaitStuck()
		if p.Len() != 4 {
			t.Errorf("the pipe holds %d bytes, want 4", p.Len())
		}
		all, err := io.ReadAll(p)
		if string(all) != "one\ntwo\n" || err != nil {
			t.Errorf("read %q, %v", all, err)
		}
	})
}

func TestReadLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(0)
		p.Write([]byte("one\r\ntwo"))
		for _, want := range []string{"one\r\n", "two", ""} {
			if want == "two" {
				if _, err := p.ReadLine(time.Second); !errors.Is(err, ErrLate) {
					t.Errorf("incomplete line: err = %v, want ErrLate", err)
				}
				p.CloseWrite()
			}
			line, err := p.ReadLine(time.Second)
			if string(line) != want || want == "" && err != io.EOF {
				t.Errorf("ReadLine = %q, %v; want %q", line, err, want)
			}
		}
	})
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		done := make(chan error)
		go func() { _, err := p.Write([]byte("ab")); done <- err }()
		p.AwaitStuck()
		p.CloseRead()
		if err := <-done; !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after CloseRead: %v", err)
		}
	})
}
