package capture

import (
	"slices"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// maxFormerOwners bounds identities.replaced.
const maxFormerOwners = 64

// A formerOwner is an owner that ConnOptions.Known has returned, and replaced by another.
type formerOwner struct {
	principal *sessionstate.Principal
	until     time.Time
}

// announceLocked reports whether Changed has to be called for the owner that Known returned for a message.
// changed reports whether it differs from before, that of the message before. Two clients in one session
// can have tokens with different permissions. If each message were a change, both clients would list the
// tools again and again. So the return of an owner of the last Options.Recheck is announced only when no
// other owner has followed for that time: the client may have listed the tools of the owner between.
func (c *Conn) announceLocked(changed bool, before, owner *sessionstate.Principal, now time.Time) bool {
	if !changed {
		changed = !c.who.returned.IsZero() && now.Sub(c.who.returned) >= c.o.Recheck
	} else if c.alternatesLocked(before, owner, now) {
		c.who.returned, changed = now, false
	}
	if changed {
		c.who.returned = time.Time{}
	}
	return changed
}

// alternatesLocked records that after replaces before as the owner of messages, and reports whether
// after has been their owner already in the last Options.Recheck.
func (c *Conn) alternatesLocked(before, after *sessionstate.Principal, now time.Time) bool {
	c.who.replaced = slices.DeleteFunc(c.who.replaced, func(o formerOwner) bool {
		return now.Sub(o.until) >= c.o.Recheck || o.principal.Same(before)
	})
	if len(c.who.replaced) >= maxFormerOwners {
		c.who.replaced = slices.Delete(c.who.replaced, 0, 1)
	}
	c.who.replaced = append(c.who.replaced, formerOwner{before, now})
	return slices.ContainsFunc(c.who.replaced, func(o formerOwner) bool { return o.principal.Same(after) })
}
