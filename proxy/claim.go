package proxy

import (
	"cmp"
	"slices"

	"github.com/attache-mcp/attache/proxy/internal/callid"
)

// claim takes the call's one reply for attache itself. It returns false if the call has a reply
// or was cancelled.
func (t *calls) claim(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.replied || c.cancelled.Load() {
		return false
	}
	c.replied = true
	return true
}

// claimSpelled claims the oldest call whose reply must be held and whose id equals the raw one
// for a reader that turns both into numbers, and returns it; nil if there is none.
func (t *calls) claimSpelled(raw []byte) *call {
	number, ok := callid.LooseNumber(raw)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var found *call
	t.anyLocked(func(c *call) bool {
		if c.awaitsReply() && c.mw.HoldsReply() && (found == nil || c.seq < found.seq) {
			if n, ok := callid.LooseNumber(c.id()); ok && n == number {
				found = c
			}
		}
		return false
	})
	if found != nil {
		found.replied = true
	}
	return found
}

// youngest returns the youngest call with the raw id that waits for a reply and is not in
// others; nil if there is none.
func (t *calls) youngest(raw []byte, others map[*call]bool) *call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.youngestLocked(&k, long, others)
}

func (t *calls) youngestLocked(k *callid.Key, long string, others map[*call]bool) (found *call) {
	for c := t.oldest.Get(k, long); c != nil; c = c.next {
		if c.awaitsReply() && !others[c] {
			found = c
		}
	}
	return found
}

// claimYoungest claims the call that youngest returns.
func (t *calls) claimYoungest(raw []byte) *call {
	k, long := callid.Of(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.youngestLocked(&k, long, nil)
	if c != nil {
		c.replied = true
	}
	return c
}

// claimAll claims the calls that have no reply and for which only returns true, and returns them
// in order of arrival. It claims them under one lock, because a call that is answered may stand
// for another request a moment later.
func (t *calls) claimAll(only func(*call) bool) []*call {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*call
	for c := range t.oldest.All {
		for ; c != nil; c = c.next {
			if !c.replied && only(c) {
				c.replied = true
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *call) int { return cmp.Compare(a.seq, b.seq) })
	return out
}
