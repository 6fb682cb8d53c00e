package proxy

import (
	"context"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Defer implements middleware.Relay.
func (c *call) Defer(m *wire.Message, work middleware.Work) {
	s := c.s
	c.holding = true
	if s.isEnding() || !s.deferred.Begin() {
		s.answer(c, wire.ErrorReply(c.id(), wire.CodeInternalError, failureText(errOver)))
		return
	}
	ctx, stop := context.WithCancel(s.deferredCtx)
	seq, ok := s.calls.deferCall(c, stop)
	if !ok {
		stop()
		s.deferred.End()
		return
	}
	d := &deferral{s: s, c: c, seq: seq, id: c.id(), m: m.Clone(), work: work}
	go func() {
		defer s.deferred.End()
		defer stop()
		d.run(ctx)
	}()
}

// A deferral is the work that answers a call later, in place of the upstream.
type deferral struct {
	s    *session
	c    *call
	seq  uint64 // of the call, which may stand for another request when it has an answer
	id   []byte
	m    *wire.Message
	work middleware.Work
}

// run does the work and answers the call, unless it has an answer.
func (d *deferral) run(ctx context.Context) {
	var reply *wire.Message
	err := d.s.protect(ctx, func(ctx context.Context, m *wire.Message) error {
		reply = d.work(ctx, m)
		return nil
	}, d.m)
	d.s.v.mu.Lock() // hooks run in the direction of the reply
	defer d.s.v.mu.Unlock()
	if d.s.over.Load() || !d.s.calls.claimDeferred(d.c, d.seq) {
		return
	}
	if err != nil || !callid.IsOfReply(d.id, reply) {
		if err == nil {
			d.s.log.WarnContext(ctx, unansweredWarning, "id", callid.Clip(d.id))
		}
		reply = wire.ErrorReply(d.id, wire.CodeInternalError, failureText(err))
	}
	d.s.answerClaimed(d.c, reply)
}

// deferCall notes that the call will be answered later, by work that stop ends, and returns its
// number. It reports false if the call has an answer or was cancelled.
func (t *calls) deferCall(c *call, stop func()) (seq uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.replied || c.cancelled.Load() || c.stop != nil {
		return 0, false
	}
	c.stop = stop
	if c.batch != nil && !c.sent.Load() {
		c.batch.open++
	}
	return c.seq, true
}

// claimDeferred is claim for a call that was deferred under the number seq. The call may stand
// for another request by now.
func (t *calls) claimDeferred(c *call, seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.seq != seq || c.replied || c.cancelled.Load() {
		return false
	}
	c.replied = true
	return true
}
