package front

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// readBody reads the body whole, before anything is written: a server of HTTP/1.1 that
// answers while it reads loses answers. It returns the body with a line end. ok is false if the
// request was refused.
func (x *exchange) readBody() (line []byte, ok bool) {
	b := &x.body
	b.limits = x.f.o.Limits
	err := errTooLarge
	if x.r.ContentLength <= b.limits.Body {
		err = b.read(x.r.Body, x.r.ContentLength)
	}
	switch {
	case errors.Is(err, errTooLarge):
		x.w.Header().Set("Connection", "close")
		x.refuse(http.StatusRequestEntityTooLarge, nil, wire.CodeInvalidRequest, "the body is larger than this server accepts")
	case errors.Is(err, ErrBusy):
		x.busy(nil, "too many large requests are being read: try again")
	case err != nil:
		x.w.Header().Set("Connection", "close")
		x.refuse(http.StatusRequestTimeout, nil, wire.CodeInvalidRequest, "the body could not be read in time")
	default:
		_ = x.rc.SetReadDeadline(time.Time{})
		return append(bytes.TrimRight(b.data, " \t\r\n"), '\n'), true
	}
	return nil, false
}

// errTooLarge is what a body meets that is over the limit.
var errTooLarge = errors.New("the body is too large")

// smallBody is how large a body may be without counting against the bytes of all bodies.
const smallBody = 16 << 10

// largeBody is how long a body may be that has memory of its own, and not memory that is lent.
const largeBody = 64 << 10

// A bodyBuffer holds a body that is being read.
type bodyBuffer struct {
	limits *limit.Limits
	data   []byte
	lent   *room.Room // what data is; nil if it has memory of its own
	taken  int64      // of the bytes of all bodies
}

// read reads a body of length bytes, -1 if that is not known.
func (b *bodyBuffer) read(from io.Reader, length int64) error {
	size := length + 2 // a byte to find the end with, and the line end
	if length < 0 {
		size = 4 << 10
	}
	if err := b.grow(size); err != nil {
		return err
	}
	for {
		if len(b.data) == cap(b.data) {
			if int64(len(b.data)) > b.limits.Body {
				return errTooLarge
			}
			if err := b.grow(min(int64(2*cap(b.data)), b.limits.Body+2)); err != nil {
				return err
			}
		}
		n, err := from.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if int64(len(b.data)) > b.limits.Body {
			return errTooLarge
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow makes room for size bytes in all.
func (b *bodyBuffer) grow(size int64) error {
	if size > smallBody {
		more := size - b.taken
		if !b.limits.TakeBytes(more) {
			return ErrBusy
		}
		b.taken += more
	}
	if len(b.data) == 0 && size > largeBody {
		b.giveBack()
		if b.lent = room.Borrow(int(size)); b.lent != nil {
			b.data = b.lent.Bytes[:0:size]
			return nil
		}
	}
	b.data = append(make([]byte, 0, size), b.data...)
	return nil
}

// lend has a message, which is the body, say that its memory is lent.
func (b *bodyBuffer) lend(m *wire.Message) {
	if b.lent != nil {
		m.Fixed, m.Lease = false, b.lent
	}
}

// giveBack gives the memory back, which others may still hold.
func (b *bodyBuffer) giveBack() {
	if b.lent != nil {
		b.lent.Release()
		b.lent = nil
	}
}

// release gives the bytes back.
func (b *bodyBuffer) release() {
	if b.taken > 0 {
		b.limits.GiveBytes(b.taken)
	}
	b.taken, b.data = 0, nil
}
