package proxy

import (
	"context"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Defer implements middleware.Relay.
func (c *relayedCall) Defer(m *wire.Message, work middleware.Work) {
	s := c.s
	c.Holding = true
	if s.isEnding() || !s.deferred.Begin() {
		s.answer(&c.call, wire.ErrorReply(c.ID(), wire.CodeInternalError, failureText(errOver)))
		return
	}
	ctx, stop := context.WithCancel(s.deferredCtx)
	// The call may be answered in another way, and then stand for another request: its number
	// tells.
	seq, ok := s.calls.Defer(&c.call, stop)
	if !ok {
		stop()
		s.deferred.End()
		return
	}
	d := &deferral{s: s, c: &c.call, seq: seq, id: c.ID(), m: m.Clone(), work: work}
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
	if d.s.over.Load() || !d.s.calls.ClaimDeferred(d.c, d.seq) {
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
