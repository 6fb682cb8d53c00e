package proxy

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/callid"
)

// A call is a request of the client in flight.
type call struct {
	mw        middleware.Call
	s         *session
	seq       uint64 // of its arrival
	key       callid.Key
	long      string      // the id, when it does not fit key
	raw       []byte      // the id as it came, when key or long is another spelling
	next      *call       // a later call in flight with the same id
	replied   bool        // its reply has come and is being handled; guarded by calls.mu
	sent      atomic.Bool // it is on its way to the upstream: hooks are complete, a reply may come
	cancelled atomic.Bool
	contested bool        // another with its id was in flight, and one of the two has a reply that must be held; guarded by calls.mu
	listens   atomic.Bool // it is a subscription
	holding   bool        // a layer holds it back; touched in the client's direction
	odd       bool        // a server may spell its id otherwise; guarded by calls.mu
	again     bool        // it was sent to the next upstream, too; touched in the client's direction
	returned  bool        // an upstream has not taken it, likewise
	suspended *suspension // what a hook asked for; touched by the goroutine that runs the hooks
	batch     *batch      // the batch it arrived in
	stop      func()      // not nil if the call was deferred: ends what will answer it; guarded by calls.mu
	frame     []byte      // its line, if it may be sent to the next upstream; touched in the client's direction
}

// id returns the raw id.
func (c *call) id() []byte {
	switch {
	case c.raw != nil:
		return bytes.Clone(c.raw)
	case c.long != "":
		return []byte(c.long)
	}
	return c.key.Clone()
}

// calls is the table of the calls in flight. Both directions use it.
type calls struct {
	limit  int
	maxIDs int // how many bytes of ids that are not kept inline may be in flight

	mu     sync.Mutex
	oldest callid.Index[call] // of each id
	n      int
	ids    int // bytes of ids that are not kept inline
	odd    int // calls whose id a server may spell otherwise
	seq    uint64
	room   chan struct{} // not nil while somebody waits for room
	free   []*call
}

func newCalls(limit, maxIDs int) *calls {
	return &calls{limit: limit, maxIDs: maxIDs, oldest: callid.NewIndex[call]()}
}

// add puts a call for the raw id in the table.
func (t *calls) add(s *session, raw []byte) *call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.take()
	c.reset(s, k, long)
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0 {
		c.raw = bytes.Clone(raw)
	}
	t.n++
	t.seq++
	c.seq = t.seq
	t.ids += len(c.long) + len(c.raw)
	if c.odd = callid.IsOdd(raw); c.odd {
		t.odd++
	}
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

// reset makes c the call of a new request. It runs in the client's direction, where the handler
// of the request that c stood for before has returned. Fields that do not change are not
// written: see middleware.Call.Ask.
func (c *call) reset(s *session, k callid.Key, long string) {
	if c.s != s {
		c.s = s
	}
	c.key, c.long, c.raw, c.next = k, long, nil, nil
	c.replied, c.contested, c.holding, c.suspended, c.batch, c.stop = false, false, false, nil, nil, nil
	c.frame, c.again, c.returned = nil, false, false
	c.sent.Store(false)
	c.cancelled.Store(false)
	c.listens.Store(false)
	c.mw.Reset(c, true)
}

func (t *calls) take() *call {
	n := len(t.free)
	if n == 0 {
		return &call{}
	}
	c := t.free[n-1]
	t.free = t.free[:n-1]
	return c
}

// reply returns the call that a reply with the raw id answers: the oldest one in flight. If a
// layer waits for the reply, or the call came in a batch, the call stays in the table until end;
// any other call leaves the table here. known reports whether there was a call. contested
// reports that the reply may belong to another call, or the other's reply to this one, and that
// one of them must be held: a server may answer in any order.
func (t *calls) reply(raw []byte) (c *call, known, contested bool) {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	c = t.oldest.Get(&k, long)
	for c != nil && !c.awaitsReply() {
		c = c.next
	}
	if c == nil {
		return nil, false, false
	}
	c.contest()
	contested = c.contested || t.odd > 0 && !c.mw.HoldsReply() && t.twin(c, raw)
	c.replied = true
	if len(c.mw.Hooks()) == 0 && len(c.mw.Sent()) == 0 && c.batch == nil {
		t.remove(c)
		t.recycle(c)
		return nil, true, contested
	}
	return c, true, contested
}

// contest notes, if it matters, that the replies to c and to the younger calls with its id
// cannot be told apart. The caller holds calls.mu.
func (c *call) contest() {
	n, holds := 0, false
	for o := c; o != nil; o = o.next {
		if o.awaitsReply() {
			n, holds = n+1, holds || o.mw.HoldsReply()
		}
	}
	for o := c; o != nil && n > 1 && holds; o = o.next {
		o.contested = true
	}
}

// twin reports whether the reply to c may be the reply to another call, whose id has another
// spelling and whose reply must be held. The caller holds calls.mu.
func (t *calls) twin(c *call, raw []byte) bool {
	number, ok := callid.Number(raw)
	return ok && t.anyLocked(func(o *call) bool {
		if o == c || !o.awaitsReply() || !o.mw.HoldsReply() {
			return false
		}
		other, ok := callid.Number(o.id())
		return ok && other == number
	})
}

// awaits reports whether a call with the raw id waits for a reply.
func (t *calls) awaits(raw []byte) bool {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oldest.Get(&k, long).any((*call).awaitsReply)
}

// awaitsReply reports whether the upstream has the call and has not replied. The caller holds
// calls.mu.
func (c *call) awaitsReply() bool { return !c.replied && c.sent.Load() }

// holdsReply reports whether a call with the raw id waits for a reply that must be held. With a
// nil id it reports whether any call does.
func (t *calls) holdsReply(raw []byte) bool {
	holds := func(c *call) bool { return c.awaitsReply() && c.mw.HoldsReply() }
	if raw == nil {
		return t.any(holds)
	}
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oldest.Get(&k, long).any(holds)
}

// awaitsBatch reports whether a call that came in an array waits for a reply.
func (t *calls) awaitsBatch() bool {
	return t.any(func(c *call) bool { return c.batch != nil && c.awaitsReply() })
}

// any reports whether something holds for a call in the table.
func (t *calls) any(holds func(*call) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.anyLocked(holds)
}

func (t *calls) anyLocked(holds func(*call) bool) bool {
	for c := range t.oldest.All {
		if c.any(holds) {
			return true
		}
	}
	return false
}

// any reports whether something holds for c or a younger call with its id. The caller
// holds calls.mu.
func (c *call) any(holds func(*call) bool) bool {
	for ; c != nil; c = c.next {
		if holds(c) {
			return true
		}
	}
	return false
}

// hasReply reports whether the call's one reply has come.
func (t *calls) hasReply(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.replied
}

// cancel takes a call that the client has cancelled out of the table and returns it; nil if
// there is none with the raw id. It is not used again. A late reply passes like any reply that
// no call waits for, unless it must be held.
func (t *calls) cancel(raw []byte) *call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := t.oldest.Get(&k, long); c != nil; c = c.next {
		c.cancelled.Store(true)
		if !c.replied {
			_ = c.mw.Hooks() // which are told so that the call is over
			t.remove(c)
			return c
		}
	}
	return nil
}

// end takes a call whose reply was written out of the table.
func (t *calls) end(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(c)
	t.recycle(c)
}

// recycle keeps c for another request. It changes nothing in c: the handler that sent it may
// still run in the client's direction (see reset).
func (t *calls) recycle(c *call) {
	if len(t.free) < 1024 {
		t.free = append(t.free, c)
	}
}

func (t *calls) remove(c *call) {
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
	t.ids -= len(c.long) + len(c.raw)
	if c.odd {
		t.odd--
	}
	if c.batch != nil && c.atWork() {
		c.batch.open--
	}
	if t.room != nil && !t.crowded() {
		close(t.room)
		t.room = nil
	}
}

func (t *calls) crowded() bool { return t.n >= t.limit || t.ids >= t.maxIDs }

// full returns a channel that is closed when there is room for another call,
// nil if there is room now.
func (t *calls) full() <-chan struct{} {
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

// settled returns a channel that is closed when no call is in flight, nil if none is. It is for the
// time when no other call comes.
func (t *calls) settled() <-chan struct{} {
	t.mu.Lock()
	t.limit = 1
	t.mu.Unlock()
	return t.full()
}

// atWork reports whether the upstream has the call, or a function that answers it in place of
// the upstream. A call that is still on its way to the upstream is answered where sending it
// fails. The caller holds calls.mu.
func (c *call) atWork() bool { return c.sent.Load() || c.stop != nil }
