package wire

import (
	"bytes"
	"io"
	"sync"
)

const (
	// smallBuffer holds the lines of everyday traffic; a Linux pipe holds as much.
	smallBuffer = 64 << 10
	// DefaultHold is how long a line may be before it streams by unheld, in bytes.
	DefaultHold = 8 << 20
	// idleBuffer is what a Reader keeps that has little to do; the rest is
	// lent to it while it has more.
	idleBuffer = 4 << 10
	// longBuffer holds lines that do not fit smallBuffer; what it does not hold gets the limit.
	longBuffer = 8 * smallBuffer
)

// A Reader cuts a stream into lines without copying them.
//
// It holds a line of up to the hold limit whole, its newline counted even where the last line of a
// stream lacks it. A longer one is handed out in chunks as it arrives, so the memory of a Reader is
// bounded by the limit whatever a peer sends. A buffer over smallBuffer is lent to it for a longer
// line and what else came with that. While a peer says little it has only idleBuffer.
type Reader struct {
	src   io.Reader
	hold  int
	buf   []byte
	start int     // first byte not handed out
	end   int     // first byte not read
	seen  int     // no newline in buf[start:seen]
	small []byte  // nil while it is not lent
	idle  []byte  // nil in a Reader that always has small
	large *[]byte // nil while it is not lent
	last  int     // bytes of the last read
	grown func()  // called when a large buffer is taken into use
	long  bool    // a line over the limit has been begun and not ended
	err   error
}

// NewReader returns a Reader that holds lines of up to hold bytes; 0 stands for
// DefaultHold.
func NewReader(src io.Reader, hold int) *Reader {
	if hold <= 0 {
		hold = DefaultHold
	}
	if hold < smallBuffer {
		return newReader(src, hold, hold)
	}
	idle := make([]byte, idleBuffer)
	return &Reader{src: src, hold: hold, buf: idle, idle: idle}
}

// smallBuffers lends Readers their small buffers, Writers those for gathering.
var smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}

// largeBuffers lend Readers large buffers: of less than longBuffer, of about that, and of more.
var largeBuffers [3]sync.Pool

// borrowLarge takes a buffer of the size into use and gives back the large one in use, if any.
func (r *Reader) borrowLarge(size int) {
	b, ok := largeBuffers[min(size/longBuffer, 2)].Get().(*[]byte)
	if !ok || len(*b) != size {
		b = new(make([]byte, size))
	}
	r.returnLarge(*b)
	r.large = b
}

// returnLarge gives the large buffer back, if there is one, when what it has is in another one.
func (r *Reader) returnLarge(to []byte) {
	r.move(to)
	if r.large != nil {
		largeBuffers[min(len(*r.large)/longBuffer, 2)].Put(r.large)
	}
	r.large = nil
}

// borrow takes a small buffer into use, unless there is one.
func (r *Reader) borrow() []byte {
	if r.small == nil {
		r.small = smallBuffers.Get().(*[smallBuffer]byte)[:]
	}
	return r.small
}

// chooseBuffer chooses the buffer for the next read when all has been handed out: after a
// read of little there will be little again.
func (r *Reader) chooseBuffer() {
	switch {
	case r.idle == nil || r.large != nil:
	case r.last >= idleBuffer/2:
		r.buf = r.borrow()
	case r.small != nil:
		smallBuffers.Put((*[smallBuffer]byte)(r.small))
		r.small, r.buf = nil, r.idle
	}
}

// Begin has the Reader begin with bytes that were read before and have no line end. Their memory
// is the Reader's. It returns r.
func (r *Reader) Begin(b []byte) *Reader {
	if len(b) > 0 {
		r.buf, r.end = b[:max(len(b), min(cap(b), r.hold))], len(b)
	}
	return r
}

func newReader(src io.Reader, hold, small int) *Reader {
	b := make([]byte, min(small, hold))
	return &Reader{src: src, hold: hold, buf: b, small: b}
}

// OnLongLine has f called, within Next, whenever a line turns out not to fit the
// small buffer and a larger one is taken into use: time to widen a pipe.
func (r *Reader) OnLongLine(f func()) { r.grown = f }

// Next returns the next line with its line end, or a chunk of a line over the hold limit, in which
// case more is true until its last chunk; that one is empty if the stream ends there. The bytes are
// valid until the next call. The last line of a stream may lack its newline.
//
// The error is the source's, io.EOF at a clean end, and comes alone.
func (r *Reader) Next() (line []byte, more bool, err error) {
	for {
		if n := bytes.IndexByte(r.buf[r.seen:r.end], '\n'); n >= 0 {
			return r.take(r.seen+n+1, false), false, nil
		}
		r.seen = r.end
		switch {
		case r.end-r.start >= r.hold:
			return r.take(r.end, true), true, nil
		case r.err != nil && (r.end > r.start || r.long):
			return r.take(r.end, false), false, nil
		case r.err != nil:
			return nil, false, r.err
		case r.long && r.end > r.start:
			return r.take(r.end, true), true, nil
		}
		r.fill()
	}
}

// take hands out the bytes up to offset end; more says that the line goes on
// behind them.
func (r *Reader) take(end int, more bool) []byte {
	line := r.buf[r.start:end:end]
	r.start, r.seen, r.long = end, end, more
	return line
}

// Buffered reports whether another whole line has been read already, so that
// what was written for the ones before it may wait for its company.
func (r *Reader) Buffered() bool {
	n := bytes.IndexByte(r.buf[r.seen:r.end], '\n')
	if n < 0 {
		r.seen = r.end
		return false
	}
	r.seen += n
	return true
}

// fill reads once, after making room.
func (r *Reader) fill() {
	// The next read may wait for hours, so it does not with a buffer that many sessions
	// together have no memory for.
	if r.large != nil && !r.long && r.end-r.start <= len(r.small)/2 {
		r.returnLarge(r.borrow())
	}
	if r.start == r.end {
		r.start, r.end, r.seen = 0, 0, 0
		r.chooseBuffer()
	}
	if r.end == len(r.buf) {
		r.makeRoom()
	}
	// A source that returns neither bytes nor an error is asked again, as
	// io.Reader allows, but not for ever.
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.last = n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// makeRoom moves what has not been handed out to the front of the buffer, or,
// where that is more than half of it, of a larger one.
func (r *Reader) makeRoom() {
	if len(r.buf) == len(r.idle) {
		r.move(r.borrow())
		return
	}
	if len(r.buf) < r.hold && r.end-r.start > len(r.buf)/2 {
		// Two steps to the limit: a large allocation costs only the pages that
		// are written, and a long line is hardly copied.
		size := r.hold
		if r.large == nil {
			size = min(8*len(r.buf), r.hold)
		}
		r.borrowLarge(size)
		if r.grown != nil {
			r.grown()
		}
		return
	}
	r.move(r.buf)
}

func (r *Reader) move(to []byte) {
	n := copy(to, r.buf[r.start:r.end])
	r.seen -= r.start
	r.buf, r.start, r.end = to, 0, n
}
