package outbox

import (
	"bytes"
	"io"
	"sync"

	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Frame assembles a message of the server. It buffers the message until it is complete, so that
// a slow message does not delay others. When the Outbox's limit is reached, a message that needs
// more memory is passed to the relay while it arrives. Only one goroutine may use a Frame.
type Frame struct {
	// Out receives the message.
	Out *Outbox
	// Ours means that the message may answer a request of attache's own. It is never passed to the
	// relay while it arrives.
	Ours bool

	// A message is buffered (room), passed while it arrives (long), or dropped (unwanted), one of the three at a time. It
	// begins in the first state.
	room     *room.Room    // the buffered bytes; nil if there are none, or after pass
	size     int           // bytes that have arrived, in each of the states
	breaks   int           // line breaks after the last byte; spaces if another byte follows
	long     *longLine     // the line to the relay after pass, otherwise nil
	env      wire.Envelope // of a message with a long line
	unwanted bool          // it cannot be a message, or the Outbox accepts no more
	msg      wire.Message
}

// Add adds a part of a message whose tokens may be on several lines.
func (f *Frame) Add(b []byte) {
	for len(b) > 0 {
		i := LineBreak(b)
		if i > 0 {
			f.addPart(b[:i])
		}
		if i == len(b) {
			return
		}
		f.breaks++
		b = b[i+1:]
	}
}

// LineBreak returns the offset of the first line break in b, which is LF or CR, len(b) for none.
func LineBreak(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		i = len(b)
	}
	if cr := bytes.IndexByte(b[:i], '\r'); cr >= 0 {
		return cr
	}
	return i
}

// addPart adds a part without line breaks. A line break between two parts becomes a space.
// Line breaks before and after the message are dropped.
func (f *Frame) addPart(b []byte) {
	for ; f.breaks > 0; f.breaks-- {
		if f.size > 0 {
			f.Put([]byte{' '})
		}
	}
	f.Put(b)
}

// Put adds a part unchanged.
func (f *Frame) Put(b []byte) {
	f.size += len(b)
	if f.long == nil && !f.unwanted && !f.grow(len(b)+1) { // 1 for the newline that End appends
		f.pass()
	}
	switch {
	case f.unwanted:
	case f.long != nil:
		f.env.Feed(b)
		_, _ = f.long.Write(b)
	default:
		f.room.Bytes = append(f.room.Bytes, b...)
	}
}

// ReadBody reads a complete message from a body of size bytes without copying it. Its tokens may be
// on several lines. If that would exceed the limit, it reads nothing and kept is false. The room has more
// than size bytes, so that each Read has space. The body must have no more than size.
func (f *Frame) ReadBody(body io.Reader, size int64) (kept bool, err error) {
	if size >= f.Out.limit || !f.grow(int(size)+1) {
		return false, nil
	}
	for err == nil {
		b, n := f.room.Bytes, 0
		n, err = body.Read(b[len(b):cap(b)])
		f.read(b[len(b) : len(b)+n])
		f.Out.Flush()
	}
	if err == io.EOF {
		err = nil
	}
	return true, err
}

// read adds a part that was read into the buffer, directly after the message. After a line break,
// the bytes must be moved.
func (f *Frame) read(b []byte) {
	i := 0
	// b is in its place already, up to the first line break.
	if f.breaks == 0 {
		i = LineBreak(b)
		f.room.Bytes = f.room.Bytes[:len(f.room.Bytes)+i]
		f.size += i
	}
	f.Add(bytes.Clone(b[i:])) // a copy, because Add writes into the memory that b is in
}

// grow makes room for n more bytes. It returns false if that would exceed the limit. The first firstRoom
// bytes of each frame are free, so that a short message always has room.
func (f *Frame) grow(n int) bool {
	had := firstRoom
	if f.room != nil {
		if had, n = cap(f.room.Bytes), n+len(f.room.Bytes); n <= had {
			return true
		}
	}
	larger := room.Borrow(n)
	if larger == nil {
		return false
	}
	// The whole capacity counts, used or not: that is what the process needs.
	if more := int64(cap(larger.Bytes) - had); f.Out.kept.Add(more) > f.Out.limit && more > 0 {
		f.Out.kept.Add(-more)
		larger.Release()
		return false
	}
	if f.room != nil {
		larger.Bytes = append(larger.Bytes, f.room.Bytes...)
		f.room.Release()
	}
	f.room = larger
	return true
}

// pass begins to pass the message to the relay while it arrives. All other messages wait until
// its end.
func (f *Frame) pass() {
	more := 0 // bytes of the room that count towards the limit
	if f.room != nil {
		f.env.Feed(f.room.Bytes)
		more = cap(f.room.Bytes) - firstRoom
	}
	// The noise of a server must not reach the client as the beginning of a line.
	if !f.Ours && f.env.CanBeMessage() {
		f.long = f.Out.long(f.room)
	}
	if f.unwanted = f.long == nil; !f.unwanted {
		f.Out.kept.Add(int64(-more))
		f.room = nil // the long line owns it, and may have released it
	}
}

// End returns the message, nil if the bytes are not a message. It drops a byte order mark in front of
// the message, as most clients do. The frame owns the bytes. After pass, the message has none.
func (f *Frame) End() *wire.Message {
	switch {
	case f.size == 0 || f.unwanted:
		return nil
	case f.long != nil:
		return wire.Oversize(wire.Server, &f.env)
	}
	f.msg.Reset(wire.Server, bytes.TrimPrefix(append(f.room.Bytes, '\n'), []byte("\xEF\xBB\xBF")))
	// A larger one is scanned by the relay, and only if a rule has to read it.
	if f.size <= smallMessage {
		scanner := scanners.Get().(*wire.Scanner)
		scanner.Look(&f.msg)
		scanners.Put(scanner)
	}
	if f.msg.Plain() && f.msg.Kind() != wire.Batch || f.msg.LookEnvelope() {
		return &f.msg
	}
	return nil
}

// smallMessage is the size of the largest message that is scanned completely at once: that costs
// little more than finding its members, and the relay need not scan it again.
const smallMessage = 4 << 10

// scanners has scanners, which are large.
var scanners = sync.Pool{New: func() any { return new(wire.Scanner) }}

// Deliver passes the message that End returned to the Outbox, and prepares the frame for the next
// message, which uses the same memory if it comes before Flush.
func (f *Frame) Deliver() {
	if f.room == nil {
		f.Reset()
		return
	}
	// A longer one passes with its memory; a shorter one is copied, so that many of them pass together.
	if len(f.msg.Line()) > maxGathered {
		f.msg.Lease = f.room
		f.Out.put(&f.msg)
		f.Reset()
		return
	}
	f.Out.put(&f.msg)
	f.room.Bytes = f.room.Bytes[:0]
	f.size, f.breaks = 0, 0
}

// Flush calls [Outbox.Flush]. It releases the memory of an empty frame.
func (f *Frame) Flush() {
	if f.size == 0 {
		f.release()
	}
	f.Out.Flush()
}

// Reset prepares the frame for the next message. It ends a long line.
func (f *Frame) Reset() {
	if f.long != nil {
		f.long.end()
	}
	f.release()
	f.size, f.breaks, f.env, f.long, f.unwanted = 0, 0, wire.Envelope{}, nil, false
}

// release releases the memory.
func (f *Frame) release() {
	if f.room != nil {
		f.Out.kept.Add(int64(firstRoom - cap(f.room.Bytes)))
		f.room.Release()
		f.room = nil
	}
}

// Size returns how many bytes have arrived.
func (f *Frame) Size() int { return f.size }

// Beginning returns the first buffered bytes, for an error or a log.
func (f *Frame) Beginning() string {
	if f.room == nil {
		return ""
	}
	return string(f.room.Bytes[:min(len(f.room.Bytes), 400)])
}
