package inflight

import (
	"bytes"
	"sync"

	"github.com/attache-mcp/attache/proxy/internal/callid"
)

// A Table has the calls in flight. Both directions use it. Make one with New.
type Table struct {
	new      func() *Call
	limit    int
	maxBytes int // the limit of bytes, and also of lines

	mu     sync.Mutex
	oldest callid.Index[Call] // of each id
	n      int
	bytes  int // of ids that are not kept inline, and of answers that wait for the server's array
	lines  int // bytes that Reserve has given to calls
	odd    int // calls whose id a server may spell otherwise
	seq    uint64
	room   chan struct{} // not nil while somebody waits for room
	free   []*Call
}

// New returns a table for limit calls, and for maxBytes bytes of ids that are not kept inline and of
// answers that wait for the server's array. newCall returns a Call whose MW was reset with its relay; it is
// called while the table is locked.
func New(limit, maxBytes int, newCall func() *Call) *Table {
	return &Table{new: newCall, limit: limit, maxBytes: maxBytes, oldest: callid.NewIndex[Call]()}
}

// Add puts a call for the raw id in the table.
func (t *Table) Add(raw []byte) *Call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.unused()
	c.reset(k, long)
	// The key has no escapes. An answer of attache's own must have the bytes of the client.
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0 {
		c.raw = bytes.Clone(raw)
	}
	t.n++
	t.seq++
	c.seq = t.seq
	t.bytes += len(c.long) + len(c.raw)
	if c.odd = callid.IsOdd(raw); c.odd {
		t.odd++
	}
	// No revision allows an id that is in use. If one comes all the same, the oldest is answered first.
	if head := t.oldest.Get(&k, long); head != nil {
		for head.next != nil {
			head = head.next
		}
		head.next = c
		return c
	}
	t.oldest.Set(&k, long, c)
	return c
}

// unused returns a call that nobody uses, a new one if all are in use.
func (t *Table) unused() *Call {
	n := len(t.free)
	if n == 0 {
		return t.new()
	}
	c := t.free[n-1]
	t.free = t.free[:n-1]
	return c
}

// Reply returns the call that a reply with the raw id answers: the oldest one in flight. If a
// layer waits for the reply, or the call came in a batch, the call stays in the table until End;
// any other call leaves the table here. known reports whether there was a call. contested
// reports that the reply may belong to another call, or the other's reply to this one, and that
// one of them must be held: a server may answer in any order.
func (t *Table) Reply(raw []byte) (c *Call, known, contested bool) {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	c = t.oldest.Get(&k, long)
	for c != nil && !c.AwaitsReply() { // one that is held back, or whose reply is
		c = c.next
	}
	if c == nil {
		return nil, false, false
	}
	c.contest()
	contested = c.contested || t.odd > 0 && !c.MW.HoldsReply() && t.twin(c, raw)
	c.replied = true
	if len(c.MW.Hooks()) == 0 && len(c.MW.Sent()) == 0 && c.Batch == nil {
		t.remove(c)
		t.recycle(c)
		return nil, true, contested
	}
	return c, true, contested
}

// twin reports whether the reply to c may be the reply to another call, whose id has another
// spelling and whose reply must be held. The caller holds Table.mu.
func (t *Table) twin(c *Call, raw []byte) bool {
	number, ok := callid.Number(raw)
	return ok && t.anyLocked(func(o *Call) bool {
		if o == c || !o.AwaitsReply() || !o.MW.HoldsReply() {
			return false
		}
		other, ok := callid.Number(o.ID())
		return ok && other == number
	})
}

// Awaits reports whether a call with the raw id waits for a reply.
func (t *Table) Awaits(raw []byte) bool {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oldest.Get(&k, long).any((*Call).AwaitsReply)
}

// Has reports whether a call with the raw id has no reply yet. The upstream or attache may be going to answer it.
func (t *Table) Has(raw []byte) bool {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oldest.Get(&k, long).any(func(c *Call) bool { return !c.replied })
}

// HoldsReply reports whether a call with the raw id waits for a reply that must be held. With a
// nil id it reports whether any call does.
func (t *Table) HoldsReply(raw []byte) bool {
	holds := func(c *Call) bool { return c.AwaitsReply() && c.MW.HoldsReply() }
	if raw == nil {
		return t.Any(holds)
	}
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oldest.Get(&k, long).any(holds)
}

// AwaitsBatch reports whether a call that came in an array waits for a reply.
func (t *Table) AwaitsBatch() bool {
	// Batch may be read only after Sent: before that, the client's direction sets it without the lock.
	return t.Any(func(c *Call) bool { return c.AwaitsReply() && c.Batch != nil })
}

// Any reports whether something holds for a call in the table. holds must not use the table.
func (t *Table) Any(holds func(*Call) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.anyLocked(holds)
}

func (t *Table) anyLocked(holds func(*Call) bool) bool {
	for c := range t.oldest.All {
		if c.any(holds) {
			return true
		}
	}
	return false
}

// HasReply reports whether the call's one reply has come.
func (t *Table) HasReply(c *Call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.replied
}

// Cancel takes a call that the client has cancelled out of the table and returns it; nil if
// there is none with the raw id. It is not used again. A late reply passes like any reply that
// no call waits for, unless it must be held. leaving, which may be nil, is called before a reply
// can find that the call is gone. It must not use the table.
func (t *Table) Cancel(raw []byte, leaving func(*Call)) *Call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := t.oldest.Get(&k, long); c != nil; c = c.next {
		c.cancelled.Store(true) // also if its reply is held back: layers ask
		if !c.replied {
			_ = c.MW.Hooks() // which are told so that the call is over
			if leaving != nil {
				leaving(c)
			}
			t.remove(c)
			return c
		}
	}
	return nil
}

// CancelListen takes the subscription with the raw id that the server ends out of the table. One that the
// server does not have yet stays, because its handler may still be adding hooks.
func (t *Table) CancelListen(raw []byte) {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := t.oldest.Get(&k, long); c != nil; c = c.next {
		if c.Listens.Load() && c.AwaitsReply() {
			c.cancelled.Store(true)
			_ = c.MW.Hooks() // as in Cancel
			t.remove(c)
			return
		}
	}
}

// End takes a call whose reply was written out of the table.
func (t *Table) End(c *Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(c)
	t.recycle(c)
}

// recycle keeps c for another request. It changes nothing in c: the handler that sent it may
// still run in the client's direction (see reset).
func (t *Table) recycle(c *Call) {
	// An idle session must not keep the memory of a burst of calls, or of long ids.
	if len(t.free) < 1024 && len(c.long)+len(c.raw) <= 1024 {
		t.free = append(t.free, c)
	}
}

func (t *Table) remove(c *Call) {
	head := t.oldest.Get(&c.key, c.long)
	if head == c {
		t.oldest.Set(&c.key, c.long, c.next)
	} else {
		for head != nil && head.next != c {
			head = head.next
		}
		if head == nil {
			return // cancelled before
		}
		head.next = c.next
	}
	c.next = nil
	t.n--
	t.bytes -= len(c.long) + len(c.raw)
	t.lines -= c.reserved
	if c.odd {
		t.odd--
	}
	if c.Batch != nil && c.AtWork() { // counted by SendInBatch or Defer
		c.Batch.open--
	}
	t.makeRoom()
}

// makeRoom wakes the callers that wait for room, if there is room. The caller holds Table.mu.
func (t *Table) makeRoom() {
	if t.room != nil && !t.crowded() {
		close(t.room)
		t.room = nil
	}
}

func (t *Table) crowded() bool { return t.n >= t.limit || t.bytes >= t.maxBytes }

// Reserve takes room for the n bytes of a call's line until the call ends. It returns false and takes none if
// the call was cancelled, or if the lines of other calls have left too little room.
func (t *Table) Reserve(c *Call, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	inTable := t.oldest.Get(&c.key, c.long).any(func(o *Call) bool { return o == c })
	if !inTable || t.lines+n > t.maxBytes {
		return false
	}
	c.reserved += n
	t.lines += n
	return true
}

// Full returns a channel that is closed when there is room for another call,
// nil if there is room now.
func (t *Table) Full() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.crowded() {
		return nil
	}
	if t.room == nil {
		t.room = make(chan struct{})
	}
	return t.room
}

// Settled returns a channel that is closed when no call is in flight, nil if none is. It is for the
// time when no other call comes.
func (t *Table) Settled() <-chan struct{} {
	t.mu.Lock()
	t.limit = 1 // so that a table with one call is full
	t.mu.Unlock()
	return t.Full()
}

// SendInBatch counts the call of a member as sent.
func (t *Table) SendInBatch(c *Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Batch.open++
	c.Sent.Store(true)
}
