package inflight

import (
	"slices"

	"github.com/attache-mcp/attache/proxy/internal/callid"
)

// Claim takes the call's one reply for attache itself. It returns false if the call has a reply
// or was cancelled.
func (t *Table) Claim(c *Call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.claim()
}

// claim is Claim. The caller holds Table.mu.
func (c *Call) claim() bool {
	if c.replied || c.cancelled.Load() {
		return false
	}
	c.replied = true
	return true
}

// ClaimSpelled claims the oldest call whose reply must be held and whose id equals the raw one
// for a reader that turns both into numbers, and returns it; nil if there is none.
func (t *Table) ClaimSpelled(raw []byte) *Call {
	number, ok := callid.LooseNumber(raw)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// The index cannot find another spelling, so all calls are compared. Such replies are rare.
	var found *Call
	t.anyLocked(func(c *Call) bool {
		if c.AwaitsReply() && c.MW.HoldsReply() && (found == nil || c.seq < found.seq) {
			if n, ok := callid.LooseNumber(c.ID()); ok && n == number {
				found = c
			}
		}
		return false // go on: an older one may follow
	})
	if found != nil {
		found.replied = true
	}
	return found
}

// Youngest returns the youngest call with the raw id that waits for a reply and is not in
// others; nil if there is none.
func (t *Table) Youngest(raw []byte, others map[*Call]bool) *Call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.youngestLocked(&k, long, others)
}

func (t *Table) youngestLocked(k *callid.Key, long string, others map[*Call]bool) (found *Call) {
	for c := t.oldest.Get(k, long); c != nil; c = c.next {
		if c.AwaitsReply() && !others[c] {
			found = c
		}
	}
	return found
}

// ClaimYoungest claims the call that Youngest returns, with no others.
func (t *Table) ClaimYoungest(raw []byte) *Call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.youngestLocked(&k, long, nil)
	if c != nil {
		c.replied = true
	}
	return c
}

// ClaimAll claims the calls that have no reply and for which only returns true, and returns them
// in order of arrival. It claims them under one lock, because a call that is answered may stand
// for another request a moment later.
func (t *Table) ClaimAll(only func(*Call) bool) []*Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*Call
	for c := range t.oldest.All {
		for ; c != nil; c = c.next {
			if !c.replied && only(c) {
				c.replied = true
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, ByArrival)
	return out
}

// Defer notes that the call will be answered later, by work that stop ends, and returns its
// number. It reports false if the call has an answer or was cancelled.
func (t *Table) Defer(c *Call, stop func()) (seq uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.replied || c.cancelled.Load() || c.stop != nil {
		return 0, false
	}
	c.stop = stop
	if c.Batch != nil && !c.Sent.Load() { // else SendInBatch has counted it; remove undoes either
		c.Batch.open++
	}
	return c.seq, true
}

// ClaimDeferred is Claim for a call that was deferred under the number seq. The call may stand
// for another request by now.
func (t *Table) ClaimDeferred(c *Call, seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.seq == seq && c.claim()
}
