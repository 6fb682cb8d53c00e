package proxy

import (
	"github.com/attache-mcp/attache/proxy/internal/array"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/wire"
)

// tooLongToRead is the error text for a call whose reply must be held and is too long to hold.
const tooLongToRead = "the server's reply is longer than the proxy may hold, and rules must be able to read it; raise limits.hold"

// mustHold reports whether a long line of the server may be a reply that must not be streamed.
// env has read the part that is held. If the id comes after that part, the line may be the reply
// to any call, even a cancelled one, or to a request of attache's own, whose reply the client must
// not see. A line that is not JSON, or that has a method, answers no call. An array is not streamed
// while calls that came in an array wait: attache would not know which of them it answers, and
// would answer each of them again at the end.
func (s *session) mustHold(env *wire.Envelope) bool {
	m := wire.Oversize(wire.Server, env)
	id := m.ID()
	switch {
	case m.Kind() == wire.Request, m.Kind() == wire.Notification, !env.CanBeMessage():
		return false
	case s.calls.HoldsReply(id), s.asks.MayAnswer(id):
		return true
	// It may be the late reply to a cancelled call, which must not pass unread.
	case id == nil && s.link.Load().Unread.Any():
		return true
	case id == nil:
		return m.Kind() == wire.Batch && s.calls.AwaitsBatch()
	case s.calls.Awaits(id): // a call whose id may be that of a cancelled one, used again
		return s.link.Load().Unread.Has(id)
	}
	return s.isStray(id)
}

// isStray reports whether a reply that no call waits for must be dropped: it may answer a call
// whose reply must be held and that was cancelled, or whose id the server spells otherwise (-0
// for 0, or 2^53+1 after it was a floating-point number).
func (s *session) isStray(id []byte) bool {
	return s.link.Load().Unread.Take(id) || s.mayHold()
}

// mayHold reports whether a reply that must be held may come under some id.
func (s *session) mayHold() bool { return s.link.Load().Unread.Any() || s.calls.HoldsReply(nil) }

// withhold drops a long line and answers the call it was for with an error. The
// caller holds v.mu.
func (s *session) withhold(r *wire.Reader, env *wire.Envelope) {
	m := flow.Drain(wire.Server, r, env)
	if s.over.Load() {
		return
	}
	s.log.Warn("a line of the server over the hold limit was dropped, because it may be a reply that rules or attache itself must read; raise limits.hold", "limit_bytes", s.o.Hold)
	switch {
	case !env.Complete(): // no message: the server has ended within it, or it is noise
	case m.Kind() == wire.Batch:
		s.withholdBatch()
	// The method came after the held part.
	case m.Kind() == wire.Request && callid.Clean(m.ID()) != nil:
		reply := wire.ErrorReply(m.ID(), wire.CodeInternalError, tooLongToRead)
		reply.From = wire.Client
		s.send(wire.Server, reply)
	case m.Kind().IsReply() && m.ID() != nil && !s.asks.Swallow(wire.Server, m):
		s.withholdReply(m.ID())
	}
}

// withholdReply answers the call with the raw id with an error, if there is one.
func (s *session) withholdReply(id []byte) {
	c, known, _ := s.calls.Reply(id) // contested or not, the reply is an error
	if c == nil && !known {
		c = s.calls.ClaimSpelled(id)
	}
	switch {
	case c != nil:
		s.answered(&s.v.ctx, c, wire.ErrorReply(c.ID(), wire.CodeInternalError, tooLongToRead), len(c.MW.Hooks())-1) // the flush that follows returns the error again
	case known:
		s.deliver(wire.ErrorReply(id, wire.CodeInternalError, tooLongToRead))
	}
}

// withholdBatch answers the calls that came in arrays with an error: which of them the dropped
// array answers is not known, and the server answers none twice.
func (s *session) withholdBatch() {
	// Their answers leave as one array, in place of the one that was dropped.
	var a array.Array
	s.v.array = &a
	for _, c := range s.calls.ClaimAll((*call).InWrittenBatch) {
		s.answered(&s.v.ctx, c, wire.ErrorReply(c.ID(), wire.CodeInternalError, tooLongToRead), len(c.MW.Hooks())-1)
	}
	s.v.array = nil
	if a.Len() == 0 {
		return
	}
	var m wire.Message
	m.Reset(wire.Server, a.Line([]byte{'\n'}))
	s.deliver(&m)
}
