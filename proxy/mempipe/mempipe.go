// Package mempipe provides a pipe in memory that behaves like a pipe of the
// operating system, and a server in memory behind two such pipes, to which package
// proxy relays as to a process. A pipe has a bounded capacity, each end can be
// closed separately, and a write fails with EPIPE after the read end was closed.
//
// A pipe blocks only on a condition variable, so it works in a bubble of
// testing/synctest. It allocates nothing once its buffer has grown.
package mempipe

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Pipe is a pipe in memory. Its methods may be called from any goroutine.
type Pipe struct {
	max int

	mu      sync.Mutex
	changed sync.Cond
	buf     []byte
	start   int  // offset in buf of the first byte that was not read
	ended   bool // the write end is closed
	broken  bool // the read end is closed
	stuck   int  // how many writers wait for room
}

// ErrLate is returned by ReadLine when no line came in time.
var ErrLate = errors.New("nothing came in time")

// New returns a pipe with a capacity of max bytes; 0 means unlimited.
func New(max int) *Pipe {
	p := &Pipe{max: max}
	p.changed.L = &p.mu
	return p
}

// Read implements io.Reader.
func (p *Pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.start == len(p.buf) && !p.ended && !p.broken {
		p.changed.Wait()
	}
	switch {
	case p.broken:
		return 0, os.ErrClosed
	case p.start == len(p.buf):
		return 0, io.EOF
	}
	n := copy(b, p.buf[p.start:])
	p.consume(n)
	return n, nil
}

// consume drops n bytes from the front. The caller holds p.mu.
func (p *Pipe) consume(n int) {
	p.start += n
	if p.start == len(p.buf) {
		p.buf, p.start = p.buf[:0], 0
	}
	p.changed.Broadcast()
}

// ReadLine returns the next line with its line end, or the rest if the write end was
// closed. It waits up to limit.
func (p *Pipe) ReadLine(limit time.Duration) ([]byte, error) {
	late := false
	t := time.AfterFunc(limit, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		late = true
		p.changed.Broadcast()
	})
	defer t.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for seen := 0; ; {
		rest := p.buf[p.start:]
		if i := bytes.IndexByte(rest[seen:], '\n'); i >= 0 {
			return p.cut(seen + i + 1), nil
		}
		seen = len(rest)
		switch {
		case p.ended && len(rest) > 0:
			return p.cut(len(rest)), nil
		case p.ended:
			return nil, io.EOF
		case late:
			return nil, ErrLate
		}
		p.changed.Wait()
	}
}

// cut removes n bytes from the front and returns them. The caller holds p.mu.
func (p *Pipe) cut(n int) []byte {
	line := bytes.Clone(p.buf[p.start : p.start+n])
	p.consume(n)
	return line
}

// Write implements io.Writer. It blocks until there was room for all bytes.
func (p *Pipe) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.ended:
			return n, os.ErrClosed
		case p.broken:
			return n, syscall.EPIPE
		}
		room := len(b) - n
		if p.max > 0 {
			room = min(room, p.max-(len(p.buf)-p.start))
		}
		p.put(b[n : n+room])
		if n += room; n == len(b) {
			return n, nil
		}
		p.stuck++
		p.changed.Broadcast()
		p.changed.Wait()
		p.stuck--
	}
}

// TryWrite writes b if there is room for all of it, and reports whether it did.
func (p *Pipe) TryWrite(b []byte) (written bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return false, os.ErrClosed
	case p.broken:
		return false, syscall.EPIPE
	case p.max > 0 && len(p.buf)-p.start+len(b) > p.max:
		return false, nil
	}
	p.put(b)
	return true, nil
}

// put appends b. The caller holds p.mu.
func (p *Pipe) put(b []byte) {
	if len(b) == 0 {
		return
	}
	if p.start > 0 && len(p.buf)+len(b) > cap(p.buf) {
		p.buf = p.buf[:copy(p.buf, p.buf[p.start:])]
		p.start = 0
	}
	p.buf = append(p.buf, b...)
	p.changed.Broadcast()
}

// CloseWrite closes the write end: a reader gets the rest and then io.EOF. A Write
// that waits for room fails.
func (p *Pipe) CloseWrite() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.changed.Broadcast()
	return nil
}

// CloseRead closes the read end: it discards the rest, and writes fail.
func (p *Pipe) CloseRead() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.buf, p.start = nil, 0
	p.changed.Broadcast()
	return nil
}

// Broken reports whether the read end is closed.
func (p *Pipe) Broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// Len returns the number of bytes in the pipe.
func (p *Pipe) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.buf) - p.start
}

// AwaitStuck waits until a Write waits for room.
func (p *Pipe) AwaitStuck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stuck == 0 {
		p.changed.Wait()
	}
}
