// Package inbox takes the messages of the requests of one session to its relay, in their order.
package inbox

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// room is how many bytes of lines may wait for the relay, beside the last of them.
const room = 64 << 10

// An Inbox takes the lines of a session's handlers to its relay. A goroutine hands them
// over, as a server that does not read must not hold up a handler; there is one only while
// lines wait. The zero value is not ready: see New.
type Inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	relay   wire.Sink  // nil before it takes lines
	try     wire.Trier // relay, if it is one; else nil
	lines   []*wire.Message
	bytes   int
	handing bool // a goroutine hands lines over
	closed  bool
	ended   bool // the relay knows that no more come
	held    bool // lines that are put wait in behind
	behind  []*wire.Message
}

// ErrClosed is what a message meets that comes behind Close.
var ErrClosed = errors.New("the session is over")

// New returns an Inbox that has no relay yet.
func New() *Inbox {
	i := &Inbox{}
	i.changed.L = &i.mu
	return i
}

// Push implements proxy.Pusher.
func (i *Inbox) Push(to wire.Sink) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.relay = to
	i.try, _ = to.(wire.Trier)
	i.handLocked()
}

// Put adds a line, which the inbox keeps and nobody changes, and waits while too much waits before
// it. The error is ErrClosed, or that of ctx if its client left while it waited.
func (i *Inbox) Put(ctx context.Context, line *wire.Message) error {
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
	if i.bytes += len(line.Line()); i.held {
		i.behind = append(i.behind, line)
		return nil
	}
	if i.try != nil && !i.handing && len(i.lines) == 0 {
		i.tryLocked(line)
		return nil
	}
	i.lines = append(i.lines, line)
	i.handLocked()
	return nil
}

// tryLocked has the relay take a line here and now, and hands it over like others if the relay
// might have to wait. The caller holds mu, which is free meanwhile.
func (i *Inbox) tryLocked(line *wire.Message) {
	i.handing = true
	i.mu.Unlock()
	taken := i.try.Try(line)
	i.mu.Lock()
	i.handing = false
	if taken {
		i.leaveLocked(line)
	} else {
		i.lines = slices.Insert(i.lines, 0, line)
	}
	i.handLocked()
}

// Hold has the lines that are put wait until Release.
func (i *Inbox) Hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = true
}

// First adds a line in front of those that wait for Release.
func (i *Inbox) First(line *wire.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines = append(i.lines, line)
	i.bytes += len(line.Line())
	i.handLocked()
}

// Release lets the lines go on that wait.
func (i *Inbox) Release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines = append(i.lines, i.behind...)
	i.held, i.behind = false, nil
	i.handLocked()
}

// wake has everybody who waits look again.
func (i *Inbox) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed.Broadcast()
}

// handLocked has the lines handed over that wait. The caller holds mu.
func (i *Inbox) handLocked() {
	if i.relay != nil && !i.handing && !i.ended && (len(i.lines) > 0 || i.closed) {
		i.handing = true
		go i.hand()
	}
}

// hand hands over lines until none waits, and behind the last of all the end.
func (i *Inbox) hand() {
	for {
		line, more := i.next()
		switch {
		case line != nil:
			_ = i.relay.Line(line, more) // which fails when the session is over
			continue
		case more:
			i.relay.End()
		}
		return
	}
}

// next returns the next line, and whether others follow. Where there is no line, the
// goroutine that hands over ends; the end may follow.
func (i *Inbox) next() (line *wire.Message, more bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.lines) == 0 {
		i.handing, i.ended = false, i.closed
		return nil, i.ended
	}
	line, i.lines[0] = i.lines[0], nil
	if i.lines = i.lines[1:]; len(i.lines) == 0 {
		i.lines = nil
	}
	i.leaveLocked(line)
	return line, len(i.lines) > 0
}

// leaveLocked says that a line does not wait any more. The caller holds mu.
func (i *Inbox) leaveLocked(line *wire.Message) {
	full := i.bytes > room
	if i.bytes -= len(line.Line()); full {
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

// Close ends the input of the relay behind the lines that wait.
func (i *Inbox) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
	i.handLocked()
}
