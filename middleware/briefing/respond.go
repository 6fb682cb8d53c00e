package briefing

import (
	"context"
	"errors"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// due returns the session of a call whose reply may carry the briefing, or nil.
func (c *Conn) due(call *middleware.Call, view *sessionstate.Context, window string) *session {
	s := c.open(view, window)
	switch {
	case !c.usesResponses():
		skip(call, "briefing.channels does not name response")
		return nil
	case s == nil && call.Explained():
		skip(call, c.shared.sessions.whyNone(view.Session.Value+window))
	}
	return s
}

// respond puts the briefing into the reply to a call, if the session's turn is open and the reply
// can carry it.
func (c *Conn) respond(call *middleware.Call, view *sessionstate.Context, s *session, r toolresult.Response, reply *wire.Message) error {
	if c.o.Results.Handle(r, reply) {
		skip(call, "the result is that of a task, which is fetched later")
		return nil
	}
	if why := r.Unfit(c.o.Catalog, reply); why != "" {
		if why != toolresult.IsError && !s.done.Load() { // perhaps in the result of a call that was in flight at the same time
			c.miss(view.Session.Value, s, why, true)
		}
		skip(call, why)
		return nil
	}
	if s.isReady() {
		return c.carry(call, view, s, r, reply)
	}
	call.Suspend(reply, s.ready, c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
		if s.isReady() {
			return c.carry(call, view, s, r, reply)
		}
		c.warnings.once("a tool response was sent without the briefing, because the policy source is slow; the next one carries it (briefing.wait, policy.timeout)")
		fail(call, "the policy source is slow; the next response carries the briefing")
		return nil
	})
	return nil
}

// plan returns how the text is put into a reply.
func (c *Conn) plan(call *middleware.Call, r toolresult.Response, reply *wire.Message) toolresult.Plan {
	return c.o.Results.Plan(call, c.shared.o.Structured, c.o.Catalog, r, reply)
}

// carry puts the text into the reply if the session still has its turn.
func (c *Conn) carry(call *middleware.Call, view *sessionstate.Context, s *session, r toolresult.Response, reply *wire.Message) error {
	if s.isEmpty() {
		fail(call, s.why)
		return nil
	}
	if call.Cancelled() {
		skip(call, "the call was cancelled")
		return nil
	}
	if !c.plan(call, r, reply).Seen && c.shared.sessions.isExhausted(s) {
		c.miss(view.Session.Value, s, toolresult.Unseen, true)
		skip(call, toolresult.Unseen)
		return nil
	}
	t := c.turnOf(view, s, "")
	return t.take(call, reply, func(reply *wire.Message, unseen int, why string) error {
		c.shared.sessions.count(s, unseen)
		if why != "" {
			if why == turnOfOther {
				s.refused.Store(true)
			}
			if t.isShared() {
				c.pause(s, askAgain)
				c.forgetMissed(view.Session.Value) // another server's response shows it, or will soon
			}
			skip(call, why)
			return nil
		}
		return c.give(call, view, t, r, reply)
	})
}

// give puts the text into the reply that has the turn, and settles the turn.
func (c *Conn) give(call *middleware.Call, view *sessionstate.Context, t turn, r toolresult.Response, reply *wire.Message) error {
	session, outcome, err := view.Session.Value, sessionstate.Open, error(nil)
	seen := c.plan(call, r, reply).Seen
	switch {
	case call.Cancelled(): // while UserTurns was asked
		skip(call, "the call was cancelled")
	case !seen && c.shared.sessions.isExhausted(t.s):
		c.miss(session, t.s, toolresult.Unseen, true)
		skip(call, toolresult.Unseen)
	default:
		outcome, err = c.inject(call, view, t, r, reply)
	}
	c.recordOutcome(session, t.s, outcome)
	return errors.Join(err, t.settle(call, reply, outcome))
}

// recordOutcome records how the turn of s has ended.
func (c *Conn) recordOutcome(session string, s *session, outcome sessionstate.Outcome) {
	switch outcome {
	case sessionstate.Seen:
		s.done.Store(true)
		c.forgetMissed(session)
	case sessionstate.Unseen:
		c.shared.sessions.countOne(s)
		c.miss(session, s, toolresult.Unseen, false)
	}
}

// inject edits the reply, and returns how the turn has ended.
func (c *Conn) inject(call *middleware.Call, view *sessionstate.Context, t turn, r toolresult.Response, reply *wire.Message) (sessionstate.Outcome, error) {
	s, plan := t.s, c.plan(call, r, reply)
	switch member, block := toolresult.InResult(r, reply, s.text); {
	case member:
		skip(call, "an attache further in has added the same briefing")
		return sessionstate.Seen, nil
	case block:
		skip(call, "an attache further in has put the same briefing in front")
		if !plan.Seen && t.isShared() {
			return sessionstate.Open, nil // the other attache has counted it
		}
		return outcome(plan.Seen && plan.How == toolresult.InBlock), nil
	}
	if err := plan.Put(call, r, reply, s.result(), view.Protocol); err != nil {
		return sessionstate.Open, err
	}
	return outcome(plan.Seen), nil
}

func outcome(seen bool) sessionstate.Outcome {
	if seen {
		return sessionstate.Seen
	}
	return sessionstate.Unseen
}
