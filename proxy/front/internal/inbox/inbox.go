// Package inbox takes the messages of the requests of one session to its relay, in their order.
package inbox

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// room is how many bytes of messages may wait for the relay, beside the last of them.
const room = 64 << 10

// An Inbox takes the messages of a session's handlers to its relay. A goroutine hands them
// over, as a server that does not read must not hold up a handler; there is one only while
// messages wait. The zero value is not ready: see New.
type Inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	relay   wire.Sink  // nil before it takes messages
	try     wire.Trier // relay, if it is one; else nil
	waiting []*wire.Message
	bytes   int  // of waiting and behind
	handing bool // a goroutine hands messages over
	closed  bool
	ended   bool // the relay knows that no more come
	held    bool // messages that are put wait in behind
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
	i.handLocked()
}

// Put adds a message, which the inbox keeps and whose bytes nobody changes, and waits while too much
// waits before it. The relay may look at the message before Put returns. The error is ErrClosed, or
// that of ctx if its client left while it waited.
func (i *Inbox) Put(ctx context.Context, m *wire.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
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
	if i.try != nil && !i.handing && len(i.waiting) == 0 {
		i.tryLocked(m)
		return nil
	}
	i.waiting = append(i.waiting, m)
	i.handLocked()
	return nil
}

// tryLocked has the relay take a message here and now, and hands it over like others if the relay
// might have to wait. The caller holds mu, which is free meanwhile.
func (i *Inbox) tryLocked(m *wire.Message) {
	i.handing = true
	i.mu.Unlock()
	taken := i.try.Try(m)
	i.mu.Lock()
	i.handing = false
	if taken {
		i.leaveLocked(m)
		release(m)
	} else {
		i.waiting = slices.Insert(i.waiting, 0, m)
	}
	i.handLocked()
}

// Hold makes messages that are put from now on wait until Release.
func (i *Inbox) Hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = true
}

// First adds a message in front of those that wait for Release.
func (i *Inbox) First(m *wire.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, m)
	i.bytes += len(m.Line())
	i.handLocked()
}

// Release ends Hold, and hands over the messages that waited for it.
func (i *Inbox) Release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, i.behind...)
	i.held, i.behind = false, nil
	i.handLocked()
}

// wake wakes everyone who waits on changed.
func (i *Inbox) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed.Broadcast()
}

// handLocked starts a goroutine that hands over the waiting messages, unless one runs or none may
// go yet. The caller holds mu.
func (i *Inbox) handLocked() {
	if i.relay != nil && !i.handing && !i.ended && (len(i.waiting) > 0 || i.closed) {
		i.handing = true
		go i.hand()
	}
}

// hand hands over messages until none waits, and tells the relay of the end once all have gone.
func (i *Inbox) hand() {
	for {
		m, more := i.next()
		switch {
		case m != nil:
			_ = i.relay.Line(m, more) // which fails when the session is over
			release(m)
			continue
		case more:
			i.relay.End()
		}
		return
	}
}

// release gives up the bytes of a message that the relay has handled.
func release(m *wire.Message) {
	if m.Lease != nil {
		m.Lease.Release()
	}
}

// next returns the next message, and whether others follow. Where there is none, the
// goroutine that hands over ends; the end may follow.
func (i *Inbox) next() (m *wire.Message, more bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) == 0 {
		i.handing, i.ended = false, i.closed
		return nil, i.ended
	}
	m, i.waiting[0] = i.waiting[0], nil
	if i.waiting = i.waiting[1:]; len(i.waiting) == 0 {
		i.waiting = nil
	}
	i.leaveLocked(m)
	return m, len(i.waiting) > 0
}

// leaveLocked says that a message does not wait any more. The caller holds mu.
func (i *Inbox) leaveLocked(m *wire.Message) {
	full := i.bytes > room
	if i.bytes -= len(m.Line()); full {
		i.changed.Broadcast()
	}
}

// Left returns how much the relay has not taken: 0 if it knows the end, else at least 1.
func (i *Inbox) Left() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return 0
	}
	return 1 + i.bytes
}

// Close ends the input of the relay behind the messages that wait.
func (i *Inbox) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
	i.handLocked()
}
