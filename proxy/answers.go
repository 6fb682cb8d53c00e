package proxy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/array"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// queue queues a frame that attache made for the client. It never blocks.
func (s *session) queue(m *wire.Message, sent func(error)) {
	if s.over.Load() {
		return
	}
	s.watch(ClientOut, m.Line())
	// While the client does not read, backlog grows, and awaitReader stops the client's direction.
	n := int64(len(m.Line()))
	s.backlog.Add(n)
	s.toClient.Queue(m.Line(), func(err error) {
		s.backlog.Add(-n)
		if sent != nil {
			sent(err)
		}
	})
}

// Answer implements relayed.Relay. It runs in the client's direction.
func (c *relayedCall) Answer(_ context.Context, reply *wire.Message) error {
	if callid.IsOfReply(c.ID(), reply) { // otherwise ensureAnswered answers
		c.s.answer(&c.call, reply)
	}
	return nil
}

// answer answers a call that has no reply yet, through the hooks it has so far. It never blocks,
// because a client that is still writing may not be reading.
func (s *session) answer(c *call, reply *wire.Message) {
	if s.calls.Claim(c) {
		s.answerClaimed(c, reply)
	}
}

// answerClaimed is answer for a call that the caller has claimed.
func (s *session) answerClaimed(c *call, reply *wire.Message) {
	// The upstream will never see the request, so it must not see a cancellation of it either.
	if !c.Sent.Load() {
		s.unseen.Add(c.ID())
	}
	ctx := &relayed.Context{Context: s.ctx} // that of the direction is in use: a handler has called Answer
	reply = s.hooks(ctx, c, reply, len(c.MW.Hooks())-1, c.Batch == nil)
	switch b := c.Batch; {
	case reply == nil: // held back, or the session is over
		return
	// The answer leaves with the others of its array.
	case b != nil:
		s.calls.AnswerLater(b, reply, c.MW.Sent())
		s.calls.End(c)
		s.answerBatch(b)
	default:
		// The call is in the table until its answer is written: the end of a session waits for that.
		s.queue(reply, func(err error) {
			s.settleSent(c.MW.Sent(), err)
			s.calls.End(c)
		})
	}
}

// hooks runs c's hooks from index i down on a reply, and returns the reply as they leave it. It
// returns nil if a hook holds the reply back, which is possible only if hold is true;
// resumeReply then continues. hold is false for a reply that leaves in an array with others, and for
// one that has passed. The caller runs in the direction of m, or answers in the client's
// direction.
func (s *session) hooks(ctx *relayed.Context, c *call, m *wire.Message, i int, hold bool) *wire.Message {
	for ; i >= 0; i-- {
		if s.over.Load() {
			return nil
		}
		ctx.Call = &c.MW
		m = s.hook(ctx, c, c.MW.Hooks()[i], m)
		for range maxInline {
			// A hook that wants to wait has called Suspend, which left the message here, and has
			// returned.
			sp := c.Suspended
			if c.Suspended = nil; sp == nil {
				break
			}
			if hold && s.holdReply(sp, c, i-1) {
				return nil
			}
			m = s.hook(ctx, c, sp.Resume, sp.Message)
		}
	}
	return m
}

// hook runs a hook, or the function with which a suspended hook continues, on a reply, and
// returns the reply as it leaves it. If it panics, the call is answered with an error, because
// the reply may be half edited.
func (s *session) hook(ctx *relayed.Context, c *call, h middleware.Handler, m *wire.Message) *wire.Message {
	err := s.protect(ctx, h, m)
	if errors.Is(err, errPanic) && !m.TooLarge() { // one that is too large is with the client already
		c.Suspended = nil
		return wire.ErrorReply(c.ID(), wire.CodeInternalError, failureText(err))
	}
	if err != nil {
		s.log.WarnContext(ctx, "a layer could not handle a reply, which passes as it is", "err", err)
	}
	return m
}

// errPanic is returned by protect when a layer has panicked.
var errPanic = errors.New("a layer panicked")

// protect runs a handler or hook of a layer, and logs a panic. The session continues.
func (s *session) protect(ctx context.Context, h middleware.Handler, m *wire.Message) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = errPanic
		if !s.over.Load() { // Run has returned, and the program may have closed its log
			s.log.ErrorContext(ctx, "a layer panicked; the session goes on", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return h(ctx, m)
}

// maxInline is how often a hook may ask to wait if waiting is not possible. It continues immediately
// each time, so a hook that asks every time would never end.
const maxInline = 8

// unansweredWarning is logged when a layer breaks the contract of [middleware.Call.Answer].
const unansweredWarning = "a layer dropped a request and did not answer it, or not with its id; it was answered with an error"

// ensureAnswered answers a request that the layers neither sent on nor answered. err is what
// they returned.
func (s *session) ensureAnswered(c *call, err error) {
	// A call that was sent or is held back gets its answer later.
	if c == &s.c.none.call || c.Holding || c.Sent.Load() || s.calls.HasReply(c) {
		return
	}
	if err == nil {
		s.log.WarnContext((*middleware.Call)(&c.MW).LogContext(), unansweredWarning, "id", callid.Clip(c.ID()))
	}
	s.answer(c, wire.ErrorReply(c.ID(), wire.CodeInternalError, failureText(err)))
}

// failRequests answers the requests in a line that will not be handled, with an error.
func (s *session) failRequests(m *wire.Message, why error) {
	if array.Crowded(m) { // answers to so many members would take too much memory
		return
	}
	var replies []*wire.Message
	for one := range m.Messages() {
		if id := callid.Clean(one.ID()); id != nil && one.Kind() == wire.Request {
			replies = append(replies, wire.ErrorReply(id, wire.CodeInternalError, failureText(why)))
		}
	}
	switch {
	case len(replies) == 0:
	case m.Kind() == wire.Batch:
		s.queue(array.JoinReplies(replies), nil)
	default:
		s.queue(replies[0], nil)
	}
}

// refuse answers a frame that must not reach the upstream. For a refused reply the upstream gets
// an error reply, because it waits for one; the client would not know its id, or take it for
// that of another request. It runs in the client's direction.
func (s *session) refuse(m *wire.Message, code int, text string) {
	id := callid.Clean(m.ID())
	// Without a link no upstream waits for a reply.
	if l := s.link.Load(); l != nil && id != nil && m.Kind().IsReply() {
		reply := wire.ErrorReply(id, code, text)
		reply.From = wire.Client
		l.Write(reply)
		return
	}
	s.queue(wire.ErrorReply(id, code, text), nil)
}
