package remote

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// chunkSize is how much of a message is kept in one piece. The last byte is room for
// the line end.
const chunkSize = 32 << 10

// chunks lends frames their memory.
var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// An output is where the messages of all answers become lines. A message is kept until
// it is whole, so one that arrives slowly does not delay the others; when too much is
// kept, the message that wants more is written as it arrives.
type output struct {
	pipe  *mempipe.Pipe
	limit int64        // bytes that may be kept beyond the first chunk of each message
	kept  atomic.Int64 // bytes that are

	mu  sync.Mutex // held while a line is written
	buf []byte     // lines that wait for flush
}

// gather is how many bytes of lines wait for flush.
const gather = 16 << 10

// write writes one line.
func (o *output) write(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(line)
	o.flushLocked()
}

// put writes a part of a line, or has it wait for flush. The caller holds mu.
func (o *output) put(b []byte) {
	if len(o.buf)+len(b) > gather {
		o.flushLocked()
	}
	if len(b) > gather {
		o.pipe.Write(b) // fails when nobody reads any more: then the session is over
		return
	}
	o.buf = append(o.buf, b...)
}

// flush writes the lines that wait. Whoever reads an answer calls it before it waits for
// more, so that lines which came together leave together.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
}

func (o *output) flushLocked() {
	if len(o.buf) > 0 {
		o.pipe.Write(o.buf)
		o.buf = o.buf[:0]
	}
}

// A frame is a message of the server while it arrives. Its methods are for one
// goroutine.
type frame struct {
	out *output

	kept     []*[chunkSize]byte // all full but the last
	n        int                // bytes in the last
	size     int
	breaks   int           // line breaks that came after the last byte
	env      wire.Envelope // has read all chunks but the last
	ours     bool          // it may answer a request of our own, and is never written as it arrives
	passing  bool          // it is being written as it arrives: out.mu is held
	unwanted bool          // it cannot be a message, or nothing may be written any more
	msg      wire.Message
}

// add takes a part of a message whose tokens may be on several lines.
func (f *frame) add(b []byte) {
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
func (f *frame) addPart(b []byte) {
	for ; f.breaks > 0; f.breaks-- {
		if f.size > 0 {
			f.put([]byte{' '})
		}
	}
	f.put(b)
}

// put takes a part as it is.
func (f *frame) put(b []byte) {
	f.size += len(b)
	for len(b) > 0 && !f.unwanted {
		if f.passing {
			f.env.Feed(b)
			f.out.put(b)
			return
		}
		if len(f.kept) == 0 || f.n == chunkSize-1 {
			f.grow()
			continue
		}
		n := copy(f.last()[f.n:chunkSize-1], b)
		f.n += n
		b = b[n:]
	}
}

func (f *frame) last() *[chunkSize]byte { return f.kept[len(f.kept)-1] }

// grow makes room, or begins to write the message where too much is kept.
func (f *frame) grow() {
	if len(f.kept) > 0 {
		f.env.Feed(f.last()[:f.n])
		if !f.env.CanBeMessage() {
			f.unwanted = true
			return
		}
		if f.out.kept.Add(chunkSize) > f.out.limit {
			f.out.kept.Add(-chunkSize)
			if f.unwanted = f.ours; !f.ours {
				f.pass()
			}
			return
		}
	}
	f.kept, f.n = append(f.kept, chunks.Get().(*[chunkSize]byte)), 0
}

// pass writes what has arrived. What follows is written as it arrives, and all others
// wait.
func (f *frame) pass() {
	f.out.mu.Lock()
	f.passing = true
	f.writeChunks()
	f.out.flushLocked()
	f.release()
}

func (f *frame) writeChunks() {
	for i, c := range f.kept {
		n := chunkSize - 1
		if i == len(f.kept)-1 {
			n = f.n
		}
		f.out.put(c[:n])
	}
}

// end returns the message, nil if what has arrived is none. Its bytes are the frame's,
// and are not there if the message is longer than one chunk.
func (f *frame) end() *wire.Message {
	switch {
	case f.size == 0 || f.unwanted:
		return nil
	case f.passing:
		return wire.Oversize(wire.Server, &f.env)
	case len(f.kept) > 1:
		f.env.Feed(f.last()[:f.n])
		if !f.env.Complete() {
			return nil
		}
		return wire.Oversize(wire.Server, &f.env)
	}
	c := f.last()
	c[f.n] = '\n'
	f.msg.Reset(wire.Server, c[:f.n+1])
	if !f.msg.LookEnvelope() {
		return nil
	}
	return &f.msg
}

// whole returns the message m that end returned with its bytes, nil if they have been
// written already.
func (f *frame) whole(m *wire.Message) *wire.Message {
	if f.passing || !m.TooLarge() {
		if f.passing {
			return nil
		}
		return m
	}
	b := make([]byte, 0, f.size+1)
	for i, c := range f.kept {
		n := chunkSize - 1
		if i == len(f.kept)-1 {
			n = f.n
		}
		b = append(b, c[:n]...)
	}
	f.msg.Reset(wire.Server, append(b, '\n'))
	f.msg.LookEnvelope()
	return &f.msg
}

// deliver writes the message that end returned, and makes the frame ready for the next.
func (f *frame) deliver() {
	if !f.passing {
		f.out.mu.Lock()
		if len(f.kept) > 0 {
			f.last()[f.n] = '\n'
			f.n++
		}
		f.writeChunks()
		f.out.mu.Unlock()
	}
	f.reset()
}

// reset makes the frame ready for the next message. A line that has been begun is
// ended.
func (f *frame) reset() {
	if f.passing {
		f.out.put([]byte{'\n'})
		f.out.mu.Unlock()
	}
	f.release()
	f.size, f.breaks, f.env, f.passing, f.unwanted = 0, 0, wire.Envelope{}, false, false
}

// release gives the memory back.
func (f *frame) release() {
	if n := len(f.kept) - 1; n > 0 {
		f.out.kept.Add(-int64(n) * chunkSize)
	}
	for i, c := range f.kept {
		chunks.Put(c)
		f.kept[i] = nil
	}
	f.kept, f.n = f.kept[:0], 0
}

// flush writes the lines that wait, and what has arrived of one that is being written.
func (f *frame) flush() {
	if f.passing {
		f.out.flushLocked() // which holds the lock
	} else {
		f.out.flush()
	}
}

// beginning returns the first bytes of what has arrived, for an error or a log.
func (f *frame) beginning() string {
	if len(f.kept) == 0 {
		return ""
	}
	n := f.n
	if len(f.kept) > 1 {
		n = chunkSize - 1
	}
	return elided(string(f.kept[0][:min(n, 400)]))
}
