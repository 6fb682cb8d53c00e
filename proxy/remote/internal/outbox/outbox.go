// Package outbox makes lines of the messages that a server sends in many answers at once, and hands
// them over to the relay.
package outbox

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An Outbox hands over the lines of all answers, on the goroutine of whoever has one while nobody
// else does. Lines that come meanwhile wait, so that they leave together. The relay may be waiting
// to send a message that follows another one: who hands over a line says before that nothing waits
// for it any more. Make one with New. Its methods may be called from any goroutine.
type Outbox struct {
	limit int64        // bytes that may be kept beyond the first room of each message
	kept  atomic.Int64 // bytes that are

	mu      sync.Mutex
	changed sync.Cond
	to      wire.Sink
	busy    bool   // somebody hands lines over, or to is not known yet
	wanted  int    // how many wait to hand over a long line
	waiting *batch // lines that are to be handed over; nil for none
	over    bool   // no more lines are taken
	ended   bool   // the relay is to know that
}

// A batch is lines that wait to be handed over, and what was read of them.
type batch struct {
	text     []byte // within firstRoom
	messages []wire.Message
}

// batches lends a batch to an Outbox that has lines that wait. Few have at any time.
var batches = sync.Pool{New: func() any { return &batch{text: make([]byte, 0, firstRoom)} }}

const (
	// mostGathered is how long a line may be that waits for others.
	mostGathered = 16 << 10
	// mostWaiting is how many lines wait.
	mostWaiting = 128
)

// hasRoom reports whether a line of n bytes may wait, too.
func (b *batch) hasRoom(n int) bool {
	return b == nil || len(b.text)+n <= firstRoom && len(b.messages) < mostWaiting
}

// add copies a message and its line into the batch.
func (b *batch) add(m *wire.Message) {
	n := len(b.text)
	b.text = append(b.text, m.Line()...)
	b.messages = append(b.messages, wire.Message{})
	c := &b.messages[len(b.messages)-1]
	c.ResetTo(m)
	c.SetLine(b.text[n:len(b.text):len(b.text)])
}

// New returns an Outbox whose frames keep up to limit bytes, beyond the first room of each.
func New(limit int) *Outbox {
	o := &Outbox{limit: int64(limit), busy: true}
	o.changed.L = &o.mu
	return o
}

// Push says where the lines go, and does not wait for them.
func (o *Outbox) Push(to wire.Sink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = to
	go o.release()
}

// Write hands over a line, as a message with that Beside, or has it wait for Flush.
func (o *Outbox) Write(line []byte, beside any) {
	var m wire.Message
	m.Reset(wire.Server, line)
	m.Beside = beside
	o.put(&m)
}

// put hands over a message, or has it wait for Flush.
func (o *Outbox) put(m *wire.Message) {
	n := len(m.Line())
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > mostGathered {
		if o.acquireLocked() {
			one := make([]wire.Message, 1)
			one[0].ResetTo(m)
			o.handLocked(one)
			o.releaseLocked()
		}
		return
	}
	for !o.over && (o.wanted > 0 || !o.waiting.hasRoom(n)) {
		if o.busy || o.wanted > 0 {
			o.changed.Wait()
			continue
		}
		o.busy = true
		o.releaseLocked()
	}
	if o.over {
		return
	}
	if o.waiting == nil {
		o.waiting = batches.Get().(*batch)
	}
	o.waiting.add(m)
}

// Flush hands over the lines that wait, unless somebody does. Whoever reads an answer calls it
// before it waits for more, so that lines which came together leave together. What comes meanwhile
// is not left to the caller, who has an answer to read.
func (o *Outbox) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || o.waiting == nil {
		return
	}
	o.busy = true
	if o.handWaitingLocked(); o.waiting != nil {
		go o.release()
		return
	}
	o.releaseLocked()
}

// acquireLocked waits until nobody hands lines over, and hands over what waits. From then on the
// caller alone hands over, until it calls release. It reports false if no lines are taken any
// more. The caller holds mu.
func (o *Outbox) acquireLocked() bool {
	o.wanted++
	for o.busy && !o.over {
		o.changed.Wait()
	}
	o.wanted--
	o.changed.Broadcast()
	if o.over {
		return false
	}
	o.busy = true
	o.handWaitingLocked()
	return true
}

// release hands over all that waits, and lets others hand over.
func (o *Outbox) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.releaseLocked()
}

func (o *Outbox) releaseLocked() {
	for o.waiting != nil {
		o.handWaitingLocked()
	}
	o.busy = false
	o.changed.Broadcast()
	if o.ended {
		o.to.End()
	}
}

// handWaitingLocked hands over the lines that wait, but not those that come meanwhile.
func (o *Outbox) handWaitingLocked() {
	if b := o.waiting; b != nil {
		o.waiting = nil
		o.changed.Broadcast()
		o.handLocked(b.messages)
		b.text, b.messages = b.text[:0], b.messages[:0]
		batches.Put(b)
	}
}

// handLocked hands over messages. The caller holds mu, which is free meanwhile.
func (o *Outbox) handLocked(messages []wire.Message) {
	o.mu.Unlock()
	var err error
	for i := range messages {
		if err = o.to.Line(&messages[i], i+1 < len(messages)); err != nil {
			break
		}
	}
	o.mu.Lock()
	o.over = o.over || err != nil
}

// End takes no more lines, and has the relay know when it has those that wait. It does not wait
// for the relay.
func (o *Outbox) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.ended = true, true
	o.changed.Broadcast()
	if !o.busy {
		o.busy = true
		go o.release()
	}
}

// A longLine is a line that the relay reads while it arrives. Nobody else hands over meanwhile.
type longLine struct {
	*io.PipeWriter
	out  *Outbox
	read chan struct{} // closed when it has been read
}

// long begins a long line with what is in begun, which is the line's then; nil for nothing. It
// returns nil if no lines are taken any more.
func (o *Outbox) long(begun *room.Room) *longLine {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.acquireLocked() {
		return nil
	}
	from, to := io.Pipe()
	l := &longLine{to, o, make(chan struct{})}
	go func() {
		defer close(l.read)
		var b []byte
		if begun != nil {
			b = begun.Bytes
			defer begun.Release()
		}
		_ = o.to.Lines(b, from)
		from.Close() // what is written when the session is over is dropped
	}()
	return l
}

// end ends the line.
func (l *longLine) end() {
	_, _ = l.Write([]byte{'\n'})
	l.Close()
	<-l.read
	l.out.release()
}
