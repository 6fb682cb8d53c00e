// Package body reads the bodies of requests into memory that is counted and lent.
//
// A body of 8 MiB would leave as much garbage with each request, so large ones are read into memory of package
// room, which is used again when the relay and the front have released it. Bytes are counted before they are
// allocated, so that many clients at once cannot make a process run out of memory; small bodies are bounded by
// the number of requests.
package body

import (
	"errors"
	"io"

	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

var (
	// ErrTooLarge is returned for a body over Limits.Body.
	ErrTooLarge = errors.New("the body is too large")
	// ErrFull is returned if the bodies being read take all the bytes of Limits.
	ErrFull = errors.New("too many bytes are being read")
)

// smallBody is the size in bytes up to which a body does not count against the bytes of Limits.
const smallBody = 16 << 10

// Large is the size in bytes above which a body is read into memory from package room.
const Large = 64 << 10

// A Buffer holds a body that a principal sends. Set Limits and Principal before the first Read. One goroutine
// uses it, and calls Release once it does not need the body any more, whatever Read has returned.
type Buffer struct {
	Limits    *limit.Limits
	Principal string
	data      []byte
	lent      *room.Room // the memory of data; nil if it was allocated
	taken     int64      // counted against the bytes of Limits
}

// Read reads a body of length bytes, or of unknown length if that is -1. It returns the body, after
// which there is room for a line end. The error is [ErrTooLarge], [ErrFull] or that of the reader.
func (b *Buffer) Read(from io.Reader, length int64) ([]byte, error) {
	if length > b.Limits.Body {
		return nil, ErrTooLarge
	}
	size := length + 2 // for the read that finds the end, and for the line end
	if length < 0 {
		size = 4 << 10
	}
	if err := b.grow(size); err != nil {
		return nil, err
	}
	for {
		// One byte more than the limit is read, to know that the body is too large.
		if len(b.data) == cap(b.data) {
			if err := b.grow(min(int64(2*cap(b.data)), b.Limits.Body+2)); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case int64(len(b.data)) > b.Limits.Body:
			return nil, ErrTooLarge
		case err == io.EOF:
			return b.data, nil
		case err != nil:
			return nil, err
		}
	}
}

// grow makes the capacity size bytes.
func (b *Buffer) grow(size int64) error {
	// Count the bytes before they are allocated. The number of requests bounds smaller bodies.
	if size > smallBody {
		more := size - b.taken
		if !b.Limits.TakeBytes(b.Principal, more) {
			return ErrFull
		}
		b.taken += more
	}
	// Borrow only for a body that is known to be large. One of unknown length begins small, and is copied as it grows.
	if len(b.data) == 0 && size > Large {
		if b.lent = room.Borrow(int(size)); b.lent != nil {
			b.data = b.lent.Bytes[:0:size]
			return nil
		}
	}
	b.data = append(make([]byte, 0, size), b.data...)
	return nil
}

// Lend hands the lease of the body's memory to m, the message in it. The Buffer stays a holder until Release. Whoever
// keeps the message, as the inbox does, becomes a holder too, so the memory is used again when all have released it.
func (b *Buffer) Lend(m *wire.Message) {
	if b.lent != nil {
		m.Fixed, m.Lease = false, b.lent
	}
}

// Release drops the body and no longer counts its bytes. Others may still hold lent memory. A caller that holds
// none must not read the body after that.
func (b *Buffer) Release() {
	if b.taken > 0 {
		b.Limits.GiveBytes(b.Principal, b.taken)
	}
	if b.lent != nil {
		b.lent.Release()
	}
	b.taken, b.data, b.lent = 0, nil, nil
}

// OneLine changes all line ends but the last to spaces. In JSON, line ends stand between tokens only.
func OneLine(b []byte) {
	for i, c := range b[:len(b)-1] {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
}
