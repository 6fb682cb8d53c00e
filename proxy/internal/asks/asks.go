// Package asks keeps the requests of the relay's own that wait for a reply. Their ids
// are strings with a prefix that is random for this process, so they can be mistaken for
// nobody else's, another attache's in the same chain included.
package asks

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Table has the requests that wait. Make one with New.
type Table struct {
	prefix []byte // with the opening quote

	mu      sync.Mutex
	n       int
	pending map[string]*Ask
	closed  bool
}

// An Ask is a request that waits for its reply.
type Ask struct {
	To    wire.Peer
	done  func(*wire.Message)
	timer *time.Timer
}

// Done ends the request with a reply, nil if there is none.
func (a *Ask) Done(reply *wire.Message) {
	a.timer.Stop()
	a.done(reply)
}

// New returns a table whose ids begin with prefix; "" stands for one that is random.
func New(prefix string) *Table {
	if prefix == "" {
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
		prefix = "attache-" + hex.EncodeToString(b[:]) + "-"
	}
	return &Table{prefix: []byte(`"` + prefix), pending: map[string]*Ask{}}
}

// Add returns the raw id of a new request, "" if the table is closed. expired is called
// when limit has passed without a reply.
func (t *Table) Add(to wire.Peer, limit time.Duration, done func(*wire.Message), expired func(id string)) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ""
	}
	id := t.nextLocked()
	t.pending[id] = &Ask{to, done, time.AfterFunc(limit, func() { expired(id) })}
	return id
}

// NextID returns a raw id that no request has had.
func (t *Table) NextID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nextLocked()
}

func (t *Table) nextLocked() string {
	t.n++
	return string(t.prefix) + strconv.Itoa(t.n) + `"`
}

// Take returns the request with the raw id and takes it out, nil if there is none.
func (t *Table) Take(id string) *Ask {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.pending[id]
	delete(t.pending, id)
	return a
}

// Owns reports whether a raw id is that of a request of attache's own, or could be.
func (t *Table) Owns(id []byte) bool {
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		id = wire.Quote((wire.Value{Raw: id}).Text())
	}
	return bytes.HasPrefix(id, t.prefix)
}

// Swallow reports whether a reply is for a request of attache's own, and if so
// takes it. A reply that comes too late, or from the peer that was not asked, is
// swallowed all the same.
func (t *Table) Swallow(from wire.Peer, m *wire.Message) bool {
	if !t.Owns(m.ID()) {
		return false
	}
	if a := t.takeFrom(from, string(m.ID())); a != nil {
		if m.TooLarge() {
			a.Done(nil)
		} else {
			a.Done(m.Clone())
		}
	}
	return true
}

// takeFrom is Take for a reply that came from a peer.
func (t *Table) takeFrom(from wire.Peer, id string) *Ask {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.pending[id]
	if a == nil || a.To != from {
		return nil
	}
	delete(t.pending, id)
	return a
}

// GiveUp ends the requests that a peer can no longer answer.
func (t *Table) GiveUp(to wire.Peer) {
	t.mu.Lock()
	var gone []*Ask
	for id, a := range t.pending {
		if a.To == to {
			gone = append(gone, a)
			delete(t.pending, id)
		}
	}
	t.mu.Unlock()
	for _, a := range gone {
		a.Done(nil)
	}
}

// Close ends all requests, and lets none be made any more.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.GiveUp(wire.Client)
	t.GiveUp(wire.Server)
}
