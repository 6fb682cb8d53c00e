package front

import (
	"context"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// inboxRoom is how many bytes of lines may wait for the relay, beside the last of them.
const inboxRoom = 64 << 10

// An inbox takes the lines of a session's handlers to its relay. A goroutine hands them
// over, as a server that does not read must not hold up a handler; there is one only while
// lines wait. The zero value is not ready: see newInbox.
type inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	relay   wire.Sink  // nil before it takes lines
	try     wire.Trier // relay, if it is one; else nil
	lines   [][]byte
	bytes   int
	handing bool // a goroutine hands lines over
	closed  bool
	ended   bool // the relay knows that no more come
	held    bool // lines that are put wait in behind
	behind  [][]byte
}

func newInbox() *inbox {
	i := &inbox{}
	i.changed.L = &i.mu
	return i
}

// Push implements proxy.Pusher.
func (i *inbox) Push(to wire.Sink) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.relay = to
	i.try, _ = to.(wire.Trier)
	i.handLocked()
}

// put adds a line, which the inbox keeps, and waits while too much waits before it. The
// error is errOver, or that of ctx if its client left while it waited.
func (i *inbox) put(ctx context.Context, line []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bytes > inboxRoom && !i.closed {
		defer context.AfterFunc(ctx, i.wake)()
	}
	for i.bytes > inboxRoom && !i.closed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		i.changed.Wait()
	}
	if i.closed {
		return errOver
	}
	if i.bytes += len(line); i.held {
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
func (i *inbox) tryLocked(line []byte) {
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

// hold has the lines that are put wait until release.
func (i *inbox) hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = true
}

// first adds a line in front of those that wait for release.
func (i *inbox) first(line []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines = append(i.lines, line)
	i.bytes += len(line)
	i.handLocked()
}

// release lets the lines go on that wait.
func (i *inbox) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines = append(i.lines, i.behind...)
	i.held, i.behind = false, nil
	i.handLocked()
}

// wake has everybody who waits look again.
func (i *inbox) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed.Broadcast()
}

// handLocked has the lines handed over that wait. The caller holds mu.
func (i *inbox) handLocked() {
	if i.relay != nil && !i.handing && !i.ended && (len(i.lines) > 0 || i.closed) {
		i.handing = true
		go i.hand()
	}
}

// hand hands over lines until none waits, and behind the last of all the end.
func (i *inbox) hand() {
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
func (i *inbox) next() (line []byte, more bool) {
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
func (i *inbox) leaveLocked(line []byte) {
	full := i.bytes > inboxRoom
	if i.bytes -= len(line); full {
		i.changed.Broadcast()
	}
}

// left returns how much the relay has not taken: 0 if it knows the end, else at least 1.
func (i *inbox) left() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return 0
	}
	return 1 + i.bytes
}

// close ends the input of the relay behind the lines that wait.
func (i *inbox) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
	i.handLocked()
}
