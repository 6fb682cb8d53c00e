package wire

import (
	"bytes"
	"io"
	"sync"
)

const (
	// smallBuffer is the size in bytes of the buffer for ordinary lines, and that of a Linux pipe.
	smallBuffer = 64 << 10
	// DefaultHold is the length in bytes of the longest line that is held whole; longer lines are
	// streamed.
	DefaultHold = 8 << 20
	// idleBuffer is the size in bytes of the buffer that a Reader with little traffic keeps.
	idleBuffer = 2 << 10
	// longBuffer is the size in bytes of the buffer for lines that do not fit smallBuffer. A line
	// that does not fit it either gets a buffer of the hold limit.
	longBuffer = 8 * smallBuffer
)

// A Reader cuts a stream into lines without copying them.
//
// It holds a line of up to the hold limit whole; the newline counts, even if the last line of a stream
// lacks it. It returns a longer line in chunks as it arrives, so the limit bounds the memory of a
// Reader whatever a peer sends. Large buffers come from a pool and are returned after a long line. A
// Reader with little traffic has a small one.
type Reader struct {
	src   io.Reader
	hold  int
	buf   []byte
	start int     // first byte not handed out
	end   int     // first byte not read
	seen  int     // no newline in buf[start:seen]
	small []byte  // from smallBuffers; nil while not in use
	idle  []byte  // nil in a Reader that always has small
	large *[]byte // from largeBuffers; nil while not in use
	last  int     // bytes of the last read, and of the reads before it, if they filled the buffer
	grown func()  // see OnLongLine
	long  bool    // within a line over the limit
	err   error
}

// NewReader returns a Reader that holds lines of up to hold bytes; 0 means DefaultHold.
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

// smallBuffers has the small buffers of Readers and the buffers of Writers.
var smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}

// largeBuffers has large buffers for Readers: smaller than longBuffer, about that size, and larger.
var largeBuffers [3]sync.Pool

// borrowLarge moves to a large buffer of that size, and returns the large buffer before it, if any.
func (r *Reader) borrowLarge(size int) {
	b, ok := largeBuffers[min(size/longBuffer, 2)].Get().(*[]byte)
	if !ok || len(*b) != size {
		b = new(make([]byte, size))
	}
	r.returnLarge(*b)
	r.large = b
}

// returnLarge moves to the buffer to, and returns the large buffer, if there is one.
func (r *Reader) returnLarge(to []byte) {
	r.move(to)
	if r.large != nil {
		largeBuffers[min(len(*r.large)/longBuffer, 2)].Put(r.large)
	}
	r.large = nil
}

// borrow returns the small buffer, which it gets from the pool first if there is none.
func (r *Reader) borrow() []byte {
	if r.small == nil {
		r.small = smallBuffers.Get().(*[smallBuffer]byte)[:]
	}
	return r.small
}

// chooseBuffer chooses the buffer for the next read when the current one is empty. After a short read
// it expects another short one.
func (r *Reader) chooseBuffer() {
	switch {
	case r.idle == nil || r.large != nil:
	case r.last >= idleBuffer:
		r.buf = r.borrow()
	case r.small != nil:
		smallBuffers.Put((*[smallBuffer]byte)(r.small))
		r.small, r.buf = nil, r.idle
	}
}

// Begin puts b, which has no line end, before the bytes of the source. The Reader keeps b. Begin
// returns r.
func (r *Reader) Begin(b []byte) *Reader {
	if len(b) > 0 {
		r.buf, r.end = b[:max(len(b), min(cap(b), r.hold))], len(b)
	}
	return r
}

// newReader returns a Reader whose first buffer has the size small, and that uses no pool for it: for a
// hold limit below smallBuffer, and for tests.
func newReader(src io.Reader, hold, small int) *Reader {
	b := make([]byte, min(small, hold))
	return &Reader{src: src, hold: hold, buf: b, small: b}
}

// OnLongLine sets a function that Next calls when a line does not fit the small buffer. The caller can
// enlarge a pipe then.
func (r *Reader) OnLongLine(f func()) { r.grown = f }

// Next returns the next line with its line end, or a chunk of a line over the hold limit. more is true
// for all chunks of a line but the last, which is empty if the stream ends there. The bytes are valid
// until the next call. The last line of a stream may lack its newline.
//
// The error is that of the source, io.EOF at the end. With an error, line is nil.
func (r *Reader) Next() (line []byte, more bool, err error) {
	for {
		if n := bytes.IndexByte(r.buf[r.seen:r.end], '\n'); n >= 0 {
			return r.take(r.seen+n+1, false), false, nil
		}
		r.seen = r.end
		switch {
		case r.end-r.start >= r.hold:
			return r.take(r.end, true), true, nil
		// The source may return its error with the last bytes: the error comes after them.
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

// take returns the bytes up to offset end; more says that the line continues.
func (r *Reader) take(end int, more bool) []byte {
	line := r.buf[r.start:end:end]
	r.start, r.seen, r.long = end, end, more
	return line
}

// Buffered reports whether another whole line was read already, so that output for the lines before it
// can be written together with its output.
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
	// The next read may block for hours, and many sessions with large buffers would need too much
	// memory.
	if r.large != nil && !r.long && r.end-r.start <= len(r.small)/2 {
		r.returnLarge(r.borrow())
	}
	if r.start == r.end {
		r.start, r.end, r.seen = 0, 0, 0
		r.chooseBuffer()
	}
	if r.end == len(r.buf) { // the last read filled the buffer: it and this one are one burst
		r.makeRoom()
	} else {
		r.last = 0
	}
	// io.Reader allows a source to return neither bytes nor an error, but not forever.
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.last += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// makeRoom moves the unread bytes to the front of the buffer or, if they fill more than half of it, of
// a larger one.
func (r *Reader) makeRoom() {
	if len(r.buf) == len(r.idle) {
		r.move(r.borrow())
		return
	}
	if len(r.buf) < r.hold && r.end-r.start > len(r.buf)/2 {
		// Two steps to the limit: a large allocation costs only the pages that are written, and few
		// bytes are copied.
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

// move moves the unread bytes to the front of to, which may be the same memory.
func (r *Reader) move(to []byte) {
	n := copy(to, r.buf[r.start:r.end])
	r.seen -= r.start
	r.buf, r.start, r.end = to, 0, n
}
