// Package asks has the table of the requests that the relay itself makes. Their ids begin with
// random digits, so that no other id is taken for one of them, not even that of another attache in
// the same chain.
//
// An id is a number of 14 digits: 8 random digits and a counter. Some servers accept no string as an
// id (Xcode's mcpbridge), and some write back only 14 or 15 digits of a number (Lua, R). Others answer with
// the digits in a string, so both are the same id here. The first digit is 3 to 8: a client that uses
// the time as an id has a 1 or 2 there, and more or fewer digits. If the client's id begins with the
// same 8 digits all the same, its request is refused.
package asks

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Table has the relay's requests that wait for a reply. Make one with New.
type Table struct {
	prefix []byte // with the opening quote; not used if base is not 0
	base   uint64 // the number before the first id of 14 digits

	mu      sync.Mutex
	n       uint64          // ids returned so far
	pending map[string]*Ask // by the id as own returns it
	ended   [2]bool         // by peer: it gets no more requests
}

// An Ask is a request that waits for its reply.
type Ask struct {
	To    wire.Peer
	done  func(*wire.Message)
	timer *time.Timer
	hold  bool // see Table.Add
}

// Done ends the request with a reply, nil if there is none.
func (a *Ask) Done(reply *wire.Message) {
	a.timer.Stop()
	a.done(reply)
}

const (
	idLen     = 14
	prefixLen = 8

	// perPrefix is the number of ids with the same prefix. The ids after them begin with the next number.
	perPrefix = 1_000_000
)

// RandomPrefix returns a prefix of 8 digits.
func RandomPrefix() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
	return strconv.FormatUint(3e7+binary.LittleEndian.Uint64(b[:])%6e7, 10)
}

// New returns a table whose ids begin with prefix, or with a random prefix if that is "". If prefix is
// not a number of 8 digits, an id is a string of the prefix and a counter.
func New(prefix string) *Table {
	if prefix == "" {
		prefix = RandomPrefix()
	}
	t := &Table{prefix: []byte(`"` + prefix), pending: map[string]*Ask{}}
	if len(prefix) == prefixLen && prefix[0] != '0' {
		t.base = number([]byte(prefix)) * perPrefix
	}
	return t
}

// number returns the value of up to 19 digits, 0 for any other text.
func number(text []byte) (n uint64) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// Add returns the raw id of a new request, "" after End for the peer. expired is called
// when limit has passed without a reply. With hold, no long reply of the server is streamed to the client
// while it could be the reply to this request. Do not set it for a request during which the client's own
// calls run: their long replies, with the id last, would be answered with errors.
func (t *Table) Add(to wire.Peer, limit time.Duration, hold bool, done func(*wire.Message), expired func(id string)) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended[to] {
		return ""
	}
	id := t.nextLocked()
	// expired takes mu first, so it finds the request however short limit is.
	t.pending[id] = &Ask{To: to, done: done, timer: time.AfterFunc(limit, func() { expired(id) }), hold: hold && to == wire.Server}
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
	if t.base != 0 {
		return strconv.FormatUint(t.base+t.n, 10)
	}
	return string(t.prefix) + strconv.FormatUint(t.n, 10) + `"`
}

// Take removes and returns the request with the raw id, nil if there is none.
func (t *Table) Take(id string) *Ask {
	id = t.own([]byte(id))
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.pending[id]
	delete(t.pending, id)
	return a
}

// Owns reports whether a raw id is, or could be, that of a request of the table.
func (t *Table) Owns(id []byte) bool { return t.own(id) != "" }

// MayAnswer reports whether a long reply of the server with the raw id may be one to a request of the
// table, also to one that has expired. With a nil id, which is not known yet, it reports whether a request
// waits that was added with hold.
func (t *Table) MayAnswer(id []byte) bool {
	owns := t.Owns(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if id != nil {
		return owns && t.n > 0 // before its first request, attache waits for no reply
	}
	for _, a := range t.pending {
		if a.hold {
			return true
		}
	}
	return false
}

// own returns a raw id as the table writes it, "" if it cannot be that of a request of the table.
func (t *Table) own(id []byte) string {
	// A server may escape what attache has not.
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		id = wire.Quote((wire.Value{Raw: id}).Text())
	}
	if t.base == 0 {
		if bytes.HasPrefix(id, t.prefix) {
			return string(id)
		}
		return ""
	}
	if len(id) == idLen+2 && id[0] == '"' && id[idLen+1] == '"' {
		id = id[1 : idLen+1]
	}
	if len(id) != idLen || !t.counted(number(id)) {
		return ""
	}
	return string(id)
}

// counted reports whether an id begins like those that the table has returned so far.
func (t *Table) counted(id uint64) bool {
	if id < t.base {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// All ids with a prefix in use, also those not returned yet: a client must not use one first.
	return (id-t.base)/perPrefix <= t.n/perPrefix
}

// Swallow handles a reply to a request of the table, and reports whether it is one. It also swallows a
// reply that comes too late, or from the wrong peer.
func (t *Table) Swallow(from wire.Peer, m *wire.Message) bool {
	id := t.own(m.ID())
	if id == "" {
		return false
	}
	t.mu.Lock()
	a := t.pending[id]
	answers := a != nil && a.To == from
	if answers {
		delete(t.pending, id)
	}
	t.mu.Unlock()
	switch {
	case !answers:
	case m.TooLarge():
		a.Done(nil)
	default:
		a.Done(m.Clone())
	}
	return true
}

// GiveUp ends the requests to a peer that can no longer answer.
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
	for _, a := range gone { // without mu: done may call Add
		a.Done(nil)
	}
}

// End ends the requests to a peer, and refuses new ones.
func (t *Table) End(to wire.Peer) {
	t.mu.Lock()
	t.ended[to] = true
	t.mu.Unlock()
	t.GiveUp(to)
}

// Close ends all requests and refuses new ones.
func (t *Table) Close() {
	t.End(wire.Client)
	t.End(wire.Server)
}
