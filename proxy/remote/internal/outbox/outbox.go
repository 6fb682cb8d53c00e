// Package outbox turns the messages of a server's concurrent HTTP responses into lines for the relay.
package outbox

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An Outbox passes the lines of all responses to the relay, in one goroutine at a time. A response
// that has a line passes it in its own goroutine, unless another goroutine is passing lines. Lines
// that arrive meanwhile wait, and are then passed together. The relay may be waiting to send a message
// that must follow another one; so a caller first signals that no message waits for it, and then
// passes a line. Make an Outbox with New. Its methods may be called from any goroutine.
type Outbox struct {
	limit int64        // bytes that all messages together may buffer, beyond firstRoom for each
	kept  atomic.Int64 // bytes that they do buffer beyond that

	mu      sync.Mutex
	changed sync.Cond
	to      wire.Sink
	// busy is the right to call to. It is not mu, so that lines can be added while the relay handles others.
	busy    bool   // a goroutine passes lines, without mu, or to is not set yet
	wanted  int    // how many goroutines wait in acquireLocked
	waiting *batch // lines to be passed; nil for none
	over    bool   // no more lines are accepted
	ended   bool   // End was called, so the relay must get the end
}

// A batch has lines to be passed, and their messages.
type batch struct {
	text     []byte // up to firstRoom
	messages []wire.Message
}

// batches has batches for the few Outboxes that have waiting lines at the same time.
var batches = sync.Pool{New: func() any { return &batch{text: make([]byte, 0, firstRoom)} }}

const (
	// firstRoom is how many buffered bytes of each message do not count towards the limit.
	firstRoom = room.Smallest
	// maxGathered is the size of the longest line that waits to be passed with others.
	maxGathered = 16 << 10
	// maxWaiting is the maximum number of waiting lines.
	maxWaiting = 128
)

// hasRoom reports whether the batch has room for a line of n bytes.
func (b *batch) hasRoom(n int) bool {
	return b == nil || len(b.text)+n <= firstRoom && len(b.messages) < maxWaiting
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

// New returns an Outbox. Each frame may buffer firstRoom bytes; beyond that, all frames together may
// buffer limit bytes.
func New(limit int) *Outbox {
	o := &Outbox{limit: int64(limit), busy: true}
	o.changed.L = &o.mu
	return o
}

// Push sets the receiver of the lines. It does not block.
func (o *Outbox) Push(to wire.Sink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = to
	go o.release()
}

// Write passes a line, as a message with that Beside, or lets it wait for Flush.
func (o *Outbox) Write(line []byte, beside any) {
	var m wire.Message
	m.Reset(wire.Server, line)
	m.Beside = beside
	o.put(&m)
}

// put passes a message, or lets it wait for Flush. If a goroutine waits in acquireLocked, put waits behind
// it: otherwise short lines could keep a long one waiting forever.
func (o *Outbox) put(m *wire.Message) {
	n := len(m.Line())
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > maxGathered {
		if o.acquireLocked() {
			one := make([]wire.Message, 1)
			one[0].ResetTo(m)
			o.passLocked(one)
			o.releaseLocked()
		}
		return
	}
	// Every turn begins anew: while this goroutine waited, or passed lines, others have changed all of it.
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

// Flush passes the waiting lines, unless another goroutine does. A reader of a response calls it
// before it waits for more, so that lines which came together are passed together. Lines that come
// meanwhile are passed on a new goroutine, because the caller has a response to read.
func (o *Outbox) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || o.waiting == nil {
		return
	}
	o.busy = true
	if o.passWaitingLocked(); o.waiting != nil {
		go o.release()
		return
	}
	o.releaseLocked()
}

// acquireLocked waits until no other goroutine passes lines, and passes the waiting lines. Then only
// the caller may pass lines, until it calls release. It returns false if no more lines are accepted.
// The caller holds mu.
func (o *Outbox) acquireLocked() bool {
	o.wanted++
	for o.busy && !o.over {
		o.changed.Wait()
	}
	o.wanted--
	o.changed.Broadcast() // put waits behind those who want to pass a long one
	if o.over {
		return false
	}
	o.busy = true
	if !o.passWaitingLocked() {
		o.releaseLocked()
		return false
	}
	return true
}

// release passes all waiting lines, and then lets other goroutines pass lines.
func (o *Outbox) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.releaseLocked()
}

// releaseLocked is release for a caller that holds mu. It repeats, because nobody else passes the lines that
// have come while it was passing some.
func (o *Outbox) releaseLocked() {
	for o.waiting != nil {
		o.passWaitingLocked()
	}
	o.busy = false
	o.changed.Broadcast()
	if o.ended {
		o.to.End()
	}
}

// passWaitingLocked passes the waiting lines, but not those that come meanwhile. It returns false if the relay
// has refused one.
func (o *Outbox) passWaitingLocked() (taken bool) {
	b := o.waiting
	if b == nil {
		return true
	}
	o.waiting = nil
	o.changed.Broadcast() // there is room for others
	taken = o.passLocked(b.messages)
	b.text, b.messages = b.text[:0], b.messages[:0]
	batches.Put(b)
	return taken
}

// passLocked passes messages, until the relay refuses one: then it returns false. The caller holds mu, which
// passLocked releases meanwhile.
func (o *Outbox) passLocked(messages []wire.Message) (taken bool) {
	o.mu.Unlock()
	var err error
	for i := range messages {
		if err = o.to.Line(&messages[i], i+1 < len(messages)); err != nil {
			break
		}
	}
	o.mu.Lock()
	if err != nil { // the session of the relay has ended
		o.over, o.waiting = true, nil
	}
	return err == nil
}

// End makes the Outbox accept no more lines. The relay gets the end after the waiting lines, from the goroutine that is
// passing lines, or a new one. End does not wait for the relay. Call it once.
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

// A longLine is a line that the relay reads while it arrives. No other lines are passed meanwhile.
type longLine struct {
	*io.PipeWriter
	out  *Outbox
	read chan struct{} // closed when the line was read
}

// long begins a long line with the bytes in start, which may be nil. The line then owns start. It
// returns nil if no more lines are accepted.
func (o *Outbox) long(start *room.Room) *longLine {
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
		if start != nil {
			b = start.Bytes
			defer start.Release()
		}
		_ = o.to.Lines(b, from)
		from.Close() // drops what is written after the end of the session
	}()
	return l
}

func (l *longLine) end() {
	_, _ = l.Write([]byte{'\n'})
	l.Close()
	<-l.read
	l.out.release()
}
