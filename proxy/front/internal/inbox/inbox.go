// Package inbox passes the messages of one session from its HTTP requests to its relay, in order.
//
// The relay may have to wait for a server that does not read. A handler whose message waits here is free: it returns
// if the message needs no answer, or waits on its stream. A handler blocks in Put only while more than room bytes
// wait, which bounds the memory of such a session.
package inbox

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// room is how many bytes of messages may wait for the relay, besides the last message.
const room = 64 << 10

// An Inbox passes the messages of a session's HTTP handlers to its relay. While messages wait, a
// goroutine passes them on, so that a server that does not read does not block a handler. The zero
// value is not usable; call New.
type Inbox struct {
	// mu is never held while the relay handles a message, which may take long. passing is the right to call the relay: at
	// most one goroutine has it, so messages keep their order.
	mu      sync.Mutex
	changed sync.Cond
	relay   wire.Sink  // nil until Push
	try     wire.Trier // relay, if it is a Trier; else nil
	waiting []*wire.Message
	bytes   int  // of waiting and behind
	passing bool // a goroutine is passing messages on
	closed  bool
	ended   bool // the relay was told the end
	held    bool // new messages wait in behind
	behind  []*wire.Message
}

// ErrClosed is the error of Put after Close.
var ErrClosed = errors.New("the session is over")

// New returns an Inbox that has no relay yet.
func New() *Inbox {
	i := &Inbox{}
	i.changed.L = &i.mu
	return i
}

// Push implements wire.Pusher.
func (i *Inbox) Push(to wire.Sink) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.relay = to
	i.try, _ = to.(wire.Trier)
	i.passLocked()
}

// Put adds a message. It blocks while too many bytes wait before it. The inbox keeps m, and the caller
// must not change its bytes. The relay may handle the message before Put returns. The error is
// ErrClosed, or ctx.Err() if ctx was done while Put blocked.
func (i *Inbox) Put(ctx context.Context, m *wire.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	// AfterFunc allocates, so it is called only if the loop below may block.
	if i.bytes > room && !i.closed {
		defer context.AfterFunc(ctx, i.wake)()
	}
	for i.bytes > room && !i.closed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		i.changed.Wait()
	}
	if i.closed {
		return ErrClosed
	}
	if m.Lease != nil {
		m.Lease.Hold()
	}
	if i.bytes += len(m.Line()); i.held {
		i.behind = append(i.behind, m)
		return nil
	}
	// On this goroutine, which saves a switch to another one, if the message is the next and the relay need not wait.
	if i.try != nil && !i.passing && len(i.waiting) == 0 {
		i.tryLocked(m)
		return nil
	}
	i.waiting = append(i.waiting, m)
	i.passLocked()
	return nil
}

// tryLocked calls Try with a message, and queues the message if the relay might have to block. The
// caller holds mu, which tryLocked releases meanwhile.
func (i *Inbox) tryLocked(m *wire.Message) {
	i.passing = true
	i.mu.Unlock()
	taken := i.try.Try(m)
	i.mu.Lock()
	i.passing = false
	if taken {
		i.leaveLocked(m)
		release(m)
	} else {
		i.waiting = slices.Insert(i.waiting, 0, m) // others may have come meanwhile
	}
	i.passLocked()
}

// Hold makes the messages of later Puts wait until Release. They still count as waiting bytes, so Put may block.
func (i *Inbox) Hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = true
}

// First adds a message before those that wait for Release.
func (i *Inbox) First(m *wire.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, m)
	i.bytes += len(m.Line())
	i.passLocked()
}

// Release ends Hold.
func (i *Inbox) Release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, i.behind...)
	i.held, i.behind = false, nil
	i.passLocked()
}

// wake wakes all goroutines that wait on changed. It locks mu: otherwise a Put that has checked its ctx and does not
// wait yet would miss the Broadcast.
func (i *Inbox) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed.Broadcast()
}

// passLocked starts a goroutine that passes on the waiting messages, unless one is running or there is
// no relay yet. The goroutine ends when nothing waits, so an idle session has none. The caller holds mu, and has
// just changed the waiting messages, the relay, closed or passing.
func (i *Inbox) passLocked() {
	if i.relay != nil && !i.passing && !i.ended && (len(i.waiting) > 0 || i.closed) {
		i.passing = true
		go i.pass()
	}
}

// pass passes messages on until none waits. After the last message of a closed inbox it tells the
// relay the end.
func (i *Inbox) pass() {
	m, more := i.next()
	for ; m != nil; m, more = i.next() {
		_ = i.relay.Line(m, more) // fails when the session has ended
		release(m)
	}
	if more {
		i.relay.End()
	}
}

// release releases the bytes of a message that the relay has handled. Put has become a holder of these bytes.
func release(m *wire.Message) {
	if m.Lease != nil {
		m.Lease.Release()
	}
}

// next removes and returns the next message, and reports whether others follow. If there is none, m is
// nil, the caller's goroutine must return, and more says whether to tell the relay the end first.
func (i *Inbox) next() (m *wire.Message, more bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	// passing is cleared under the lock of the look at waiting: otherwise a Put between the two would start no goroutine,
	// and its message would wait.
	if len(i.waiting) == 0 {
		i.passing, i.ended = false, i.closed
		return nil, i.ended
	}
	m, i.waiting[0] = i.waiting[0], nil
	if i.waiting = i.waiting[1:]; len(i.waiting) == 0 {
		i.waiting = nil
	}
	i.leaveLocked(m)
	return m, len(i.waiting) > 0
}

// leaveLocked stops counting a message as waiting. The caller holds mu.
func (i *Inbox) leaveLocked(m *wire.Message) {
	full := i.bytes > room // otherwise nobody waits
	if i.bytes -= len(m.Line()); full {
		i.changed.Broadcast()
	}
}

// Left returns a measure of the input that the relay has not handled: 0 if the relay has been told of the end,
// else 1 more than the number of waiting bytes. If Left does not change for some time after Close, the relay
// makes no progress.
func (i *Inbox) Left() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return 0
	}
	return 1 + i.bytes
}

// Close ends the input of the relay after the messages that wait, except those that Hold keeps back: their requests
// were answered when the session was closed.
func (i *Inbox) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
	i.passLocked()
}
