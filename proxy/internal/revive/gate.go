package revive

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// errEnded is returned by a write to a server that has ended.
var errEnded = errors.New("the server has ended")

// A Gate is the input of one run of a server. It is shut until the server is ready:
// until then it buffers what is written, and a writer blocks when the limit is reached.
// It is closed when the server has ended: then every write fails. A Link makes its gate.
type Gate struct {
	open  atomic.Bool       // read without the lock, which is all that an open gate costs
	to    io.Writer         // set before open, like the next two, and never again
	try   wire.TryWriter    // to, if it implements this; else nil
	taker wire.MessageTaker // to, if it implements this; else nil

	limit int           // how many bytes are buffered before a writer blocks
	hold  time.Duration // how long a line waits at most
	owner gateOwner

	settled chan struct{} // closed when the gate is opened or replaced
	wanted  chan struct{} // closed when there is something to write

	mu       sync.Mutex
	room     sync.Cond // signals that buf was taken, or that the gate was closed
	buf      []byte
	deadline time.Time // until when the lines in buf may wait
	timer    *time.Timer
	over     bool // the gate was closed
}

// A gateOwner is told what happens at a gate.
type gateOwner interface {
	// expire is called when the oldest line has waited as long as it may.
	expire()
	// fail is called with what could not be written, of which n bytes were.
	fail(b []byte, n int)
}

// newGate returns a gate that is shut.
func newGate(limit int, hold time.Duration, owner gateOwner) *Gate {
	g := &Gate{limit: limit, hold: hold, owner: owner, settled: make(chan struct{}), wanted: make(chan struct{})}
	g.room.L = &g.mu
	return g
}

// Write implements io.Writer.
func (g *Gate) Write(b []byte) (n int, err error) {
	kept, err := g.KeepShut(b, true)
	switch {
	case kept:
		return len(b), nil
	case err == nil:
		n, err = g.to.Write(b) // fails if the gate was closed just now: the server is gone then
	}
	if err != nil {
		g.owner.fail(b, n)
	}
	return n, err
}

// KeepShut buffers b if the gate is shut, and reports whether it did. If wait is true, it
// waits for room.
func (g *Gate) KeepShut(b []byte, wait bool) (kept bool, err error) {
	if g.open.Load() {
		return false, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for wait && !g.over && !g.open.Load() && len(g.buf) >= g.limit {
		g.room.Wait()
	}
	switch { // again: the gate may have been opened or closed since
	case g.open.Load():
		return false, nil
	case g.over:
		return false, errEnded
	}
	g.keepLocked(b, time.Now().Add(g.hold))
	return true, nil
}

// TryWrite implements wire.TryWriter.
func (g *Gate) TryWrite(b []byte) (written bool, err error) {
	if !g.open.Load() || g.try == nil {
		return false, nil
	}
	if written, err = g.try.TryWrite(b); err != nil {
		g.owner.fail(b, 0) // TryWrite writes all or nothing
	}
	return written, err
}

// Take implements wire.MessageTaker.
func (g *Gate) Take(m *wire.Message) bool { return g.open.Load() && g.taker != nil && g.taker.Take(m) }

// Keep buffers lines that already wait for the server, until the deadline at most. Call it
// before the first write.
func (g *Gate) Keep(lines []byte, deadline time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keepLocked(lines, deadline)
}

func (g *Gate) keepLocked(lines []byte, deadline time.Time) {
	if len(lines) == 0 {
		return
	}
	if len(g.buf) == 0 { // the first line has the earliest deadline
		closeOnce(g.wanted)
		g.deadline = deadline
		g.timer = time.AfterFunc(time.Until(deadline), g.owner.expire)
	}
	g.buf = append(g.buf, lines...)
}

// Want reports to the supervisor that there is something to write.
func (g *Gate) Want() {
	g.mu.Lock()
	defer g.mu.Unlock()
	closeOnce(g.wanted)
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Await waits until the gate is opened or replaced. It returns false if it first receives
// from late or over.
func (g *Gate) Await(late <-chan time.Time, over <-chan struct{}) bool {
	g.Want()
	select {
	case <-g.settled:
		return true
	case <-late:
	case <-over:
	}
	return false
}

// IsOpen reports whether the server is ready and has not ended.
func (g *Gate) IsOpen() bool { return g.open.Load() }

// Open writes the buffered lines to w after edit has edited them, and lets later writes
// pass to w. Lines that w did not read stay buffered. Open blocks as long as w blocks.
// edit may be nil for a gate that has kept nothing.
//
// It holds mu during the write, so that no later line overtakes. The gate may be closed
// before that, but not meanwhile.
func (g *Gate) Open(w io.Writer, edit func(lines []byte) []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	lines := g.takeLocked()
	if len(lines) > 0 && !g.over {
		lines = edit(lines)
		if n, err := w.Write(lines); err != nil {
			lines = unsent(lines, n)
		} else {
			lines = nil
		}
	}
	if g.over { // for TakeKept: the next server may get them
		g.buf = lines
		return
	}
	g.keepLocked(lines, time.Now().Add(g.hold))
	g.to = w
	g.try, _ = w.(wire.TryWriter)
	g.taker, _ = w.(wire.MessageTaker)
	g.open.Store(true)
	closeOnce(g.settled)
}

// TakeKept returns the buffered lines and until when they may wait, and removes them.
func (g *Gate) TakeKept() (lines []byte, deadline time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takeLocked(), g.deadline
}

func (g *Gate) takeLocked() []byte {
	lines := g.buf
	g.buf = nil
	if g.timer != nil {
		g.timer.Stop()
	}
	g.room.Broadcast()
	return lines
}

// Close makes all later writes fail. TakeKept still returns the buffered lines.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	g.open.Store(false)
	if g.timer != nil {
		g.timer.Stop()
	}
	g.room.Broadcast()
}

// Replaced ends every Await: another gate has replaced this one.
func (g *Gate) Replaced() {
	g.mu.Lock()
	defer g.mu.Unlock()
	closeOnce(g.settled)
}
