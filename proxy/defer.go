package proxy

import (
	"context"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Defer implements relayed.Relay.
func (c *relayedCall) Defer(m *wire.Message, work relayed.Work) {
	s := c.s
	c.Holding = true // ensureAnswered must not answer when the handler returns
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
	id, m := c.ID(), m.Clone() // from here on, the call may stand for another request at any time
	go func() {
		defer s.deferred.End()
		defer stop()
		var reply *wire.Message
		err := s.protect(ctx, func(ctx context.Context, m *wire.Message) error {
			reply = work(ctx, m)
			return nil
		}, m)
		s.answerDeferred(&c.call, seq, id, reply, err)
	}()
}

// answerDeferred answers the call that was deferred under the number seq, unless it has an answer. err is
// that of the work which returned reply.
func (s *session) answerDeferred(c *call, seq uint64, id []byte, reply *wire.Message, err error) {
	s.v.mu.Lock() // hooks run in the direction of the reply
	defer s.v.mu.Unlock()
	// Once the call is claimed, it stays that of this request until it is answered.
	if s.over.Load() || !s.calls.ClaimDeferred(c, seq) {
		return
	}
	if err != nil || !callid.IsOfReply(id, reply) {
		if err == nil {
			s.log.WarnContext(s.deferredCtx, unansweredWarning, "id", callid.Clip(id))
		}
		reply = wire.ErrorReply(id, wire.CodeInternalError, failureText(err))
	}
	s.answerClaimed(c, reply)
}
