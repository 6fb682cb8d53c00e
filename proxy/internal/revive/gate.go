package revive

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// ErrEnded is the error of a write to a server that has ended.
var ErrEnded = errors.New("the server has ended")

// A Gate is the input of one life of a server. It is shut until the server is ready:
// what is written meanwhile is kept, and the writer waits once the limit is reached. It
// is closed when the server has ended: then every write fails. A link makes it.
type Gate struct {
	open  atomic.Bool       // read without the lock: a frame costs no more than this
	to    io.Writer         // set before open is
	try   wire.TryWriter    // to, if it is one; else nil
	taker wire.MessageTaker // to, if it is one; else nil

	limit   int           // how many bytes are kept before the writer waits
	hold    time.Duration // how long a line waits at most
	expired func()        // called when the oldest line has waited for that long

	settled chan struct{} // closed when the gate is opened or replaced
	wanted  chan struct{} // closed when something is to be written

	mu       sync.Mutex
	room     sync.Cond
	kept     []byte
	deadline time.Time // when what is kept has waited long enough
	timer    *time.Timer
	over     bool
}

// newGate returns the gate of a link, which is shut.
func newGate(l *Link) *Gate {
	g := &Gate{limit: l.o.Limit, hold: l.o.Hold, expired: func() { l.o.Expired(l) }, settled: make(chan struct{}), wanted: make(chan struct{})}
	g.room.L = &g.mu
	return g
}

// Write implements io.Writer.
func (g *Gate) Write(b []byte) (int, error) {
	switch kept, err := g.KeepShut(b, true); {
	case err != nil:
		return 0, err
	case kept:
		return len(b), nil
	}
	return g.to.Write(b)
}

// KeepShut keeps b if the gate is shut, and reports whether it is. If wait is set it waits
// while there is no room.
func (g *Gate) KeepShut(b []byte, wait bool) (kept bool, err error) {
	if g.open.Load() {
		return false, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for wait && !g.over && !g.open.Load() && len(g.kept) >= g.limit {
		g.room.Wait()
	}
	switch {
	case g.open.Load():
		return false, nil
	case g.over:
		return false, ErrEnded
	}
	g.keepLocked(b, time.Now().Add(g.hold))
	return true, nil
}

// TryWrite implements wire.TryWriter.
func (g *Gate) TryWrite(b []byte) (written bool, err error) {
	if !g.open.Load() || g.try == nil {
		return false, nil
	}
	return g.try.TryWrite(b)
}

// Take implements wire.MessageTaker.
func (g *Gate) Take(m *wire.Message) bool { return g.open.Load() && g.taker != nil && g.taker.Take(m) }

// Keep keeps lines that wait for the server, until the deadline at most. It is called
// before anybody writes.
func (g *Gate) Keep(lines []byte, deadline time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keepLocked(lines, deadline)
}

func (g *Gate) keepLocked(lines []byte, deadline time.Time) {
	if len(lines) == 0 {
		return
	}
	if len(g.kept) == 0 {
		closeOnce(g.wanted)
		g.deadline = deadline
		g.timer = time.AfterFunc(time.Until(deadline), g.expired)
	}
	g.kept = append(g.kept, lines...)
}

// Want says that something is to be written.
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

// Await waits until the gate is opened or replaced. It reports false if one of the
// channels says before that it is too late.
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

// Open writes what was kept to w, as edit leaves it, and from then on all that comes.
// What w does not take stays kept. It blocks for as long as w does.
func (g *Gate) Open(w io.Writer, edit func(lines []byte) []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.takeLocked()
	if len(kept) > 0 && !g.over {
		kept = edit(kept)
		if n, err := w.Write(kept); err != nil {
			kept = Unsent(kept, n)
		} else {
			kept = nil
		}
	}
	if g.over {
		g.kept = kept
		return
	}
	g.keepLocked(kept, time.Now().Add(g.hold))
	g.to = w
	g.try, _ = w.(wire.TryWriter)
	g.taker, _ = w.(wire.MessageTaker)
	g.open.Store(true)
	closeOnce(g.settled)
}

// TakeKept returns what was kept and until when it may wait, and keeps it no longer.
func (g *Gate) TakeKept() (kept []byte, deadline time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takeLocked(), g.deadline
}

func (g *Gate) takeLocked() []byte {
	kept := g.kept
	g.kept = nil
	if g.timer != nil {
		g.timer.Stop()
	}
	g.room.Broadcast()
	return kept
}

// Close has every write to come fail. What was kept can still be taken.
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

// Replaced says that another gate stands in the place of this one.
func (g *Gate) Replaced() {
	g.mu.Lock()
	defer g.mu.Unlock()
	closeOnce(g.settled)
}
