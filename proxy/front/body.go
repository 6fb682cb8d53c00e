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

// readBody reads the whole body before anything is written, because an HTTP/1.1 server that answers
// while it reads loses answers. It returns the body with a line end. ok is false if the request was
// refused.
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

// errTooLarge is returned for a body over the limit.
var errTooLarge = errors.New("the body is too large")

// smallBody is the size in bytes up to which a body does not count against the bytes of Limits.
const smallBody = 16 << 10

// largeBody is the size in bytes above which a body is read into memory from package room.
const largeBody = 64 << 10

// A bodyBuffer holds a body that is being read.
type bodyBuffer struct {
	limits *limit.Limits
	data   []byte
	lent   *room.Room // the memory of data; nil if it was allocated
	taken  int64      // counted against the bytes of Limits
}

// read reads a body of length bytes, or of unknown length if that is -1.
func (b *bodyBuffer) read(from io.Reader, length int64) error {
	size := length + 2 // for the read that finds the end, and for the line end
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

// grow makes the capacity size bytes.
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

// lend hands the lease of the body's memory to m, the message in it.
func (b *bodyBuffer) lend(m *wire.Message) {
	if b.lent != nil {
		m.Fixed, m.Lease = false, b.lent
	}
}

// giveBack releases this buffer's hold on lent memory. Others may still hold it.
func (b *bodyBuffer) giveBack() {
	if b.lent != nil {
		b.lent.Release()
		b.lent = nil
	}
}

// release drops the body and no longer counts its bytes.
func (b *bodyBuffer) release() {
	if b.taken > 0 {
		b.limits.GiveBytes(b.taken)
	}
	b.taken, b.data = 0, nil
}
