package outbox

import (
	"bytes"
	"io"
	"sync"

	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// firstRoom is how many bytes of a message are kept without counting them.
const firstRoom = room.Smallest

// A Frame is a message of the server while it arrives. It is kept until it is whole, so one that
// arrives slowly does not delay the others; when too much is kept, the message that wants more is
// handed over as it arrives. Its methods are for one goroutine.
type Frame struct {
	// Out takes the message.
	Out *Outbox
	// Ours says that it may answer a request of our own: it is never handed over as it arrives.
	Ours bool

	room     *room.Room // what has arrived; nil before, and when it is not kept
	size     int
	breaks   int           // line breaks that came after the last byte
	long     *longLine     // not nil if it is
	env      wire.Envelope // of a long one
	unwanted bool          // it cannot be a message, or nothing may be handed over any more
	msg      wire.Message
}

// Add takes a part of a message whose tokens may be on several lines.
func (f *Frame) Add(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b)
		}
		if cr := bytes.IndexByte(b[:i], '\r'); cr >= 0 {
			i = cr
		}
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

// addPart takes a part without line breaks. A line break between two parts becomes a
// space; one before the message or behind it is dropped.
func (f *Frame) addPart(b []byte) {
	for ; f.breaks > 0; f.breaks-- {
		if f.size > 0 {
			f.Put([]byte{' '})
		}
	}
	f.Put(b)
}

// Put takes a part as it is.
func (f *Frame) Put(b []byte) {
	f.size += len(b)
	if f.long == nil && !f.unwanted && !f.grow(len(b)+1) {
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

// ReadBody takes a whole message from a body of size bytes without a copy. Its tokens may be on
// several lines. kept is false, and nothing has been read, if too much would be kept.
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

// read takes a part that was read to where the message goes on. What follows a line break may have
// to stand elsewhere.
func (f *Frame) read(b []byte) {
	i := 0
	if f.breaks == 0 {
		if i = bytes.IndexByte(b, '\n'); i < 0 {
			i = len(b)
		}
		if cr := bytes.IndexByte(b[:i], '\r'); cr >= 0 {
			i = cr
		}
		f.room.Bytes = f.room.Bytes[:len(f.room.Bytes)+i]
		f.size += i
	}
	f.Add(bytes.Clone(b[i:]))
}

// grow makes room for n bytes more. It reports false if too much is kept.
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

// pass hands over what has arrived. What follows is handed over as it arrives, and all others
// wait.
func (f *Frame) pass() {
	more := 0 // that the room has
	if f.room != nil {
		f.env.Feed(f.room.Bytes)
		more = cap(f.room.Bytes) - firstRoom
	}
	if !f.Ours && f.env.CanBeMessage() {
		f.long = f.Out.long(f.room)
	}
	if f.unwanted = f.long == nil; !f.unwanted && f.room != nil {
		f.Out.kept.Add(int64(-more))
		f.room = nil // which the line has, and may have given back
	}
}

// End returns the message, nil if what has arrived is none. Its bytes are the frame's, and are
// not there if it has been handed over.
func (f *Frame) End() *wire.Message {
	switch {
	case f.size == 0 || f.unwanted:
		return nil
	case f.long != nil:
		return wire.Oversize(wire.Server, &f.env)
	}
	f.msg.Reset(wire.Server, append(f.room.Bytes, '\n'))
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

// smallMessage is how long a message may be that is looked at whole at once: that costs little
// more than to look for its members, and the relay need not look again.
const smallMessage = 4 << 10

// scanners lends scanners, which are large.
var scanners = sync.Pool{New: func() any { return new(wire.Scanner) }}

// Deliver hands over the message that End returned, and makes the frame ready for the next, which
// gets the same memory if it comes before Flush.
func (f *Frame) Deliver() {
	if f.room == nil {
		f.Reset()
		return
	}
	if len(f.msg.Line()) > mostGathered {
		f.msg.Lease = f.room
		f.Out.put(&f.msg)
		f.Reset()
		return
	}
	f.Out.put(&f.msg)
	f.room.Bytes = f.room.Bytes[:0]
	f.size, f.breaks = 0, 0
}

// Flush is [Outbox.Flush]. It gives back the memory of a frame in which nothing has arrived.
func (f *Frame) Flush() {
	if f.size == 0 {
		f.release()
	}
	f.Out.Flush()
}

// Reset makes the frame ready for the next message. A line that has been begun is
// ended.
func (f *Frame) Reset() {
	if f.long != nil {
		f.long.end()
	}
	f.release()
	f.size, f.breaks, f.env, f.long, f.unwanted = 0, 0, wire.Envelope{}, nil, false
}

// release gives the memory back.
func (f *Frame) release() {
	if f.room != nil {
		f.Out.kept.Add(int64(firstRoom - cap(f.room.Bytes)))
		f.room.Release()
		f.room = nil
	}
}

// Size returns how many bytes have arrived.
func (f *Frame) Size() int { return f.size }

// Beginning returns the first bytes of what has arrived, for an error or a log.
func (f *Frame) Beginning() string {
	if f.room == nil {
		return ""
	}
	return string(f.room.Bytes[:min(len(f.room.Bytes), 400)])
}
