package proxy

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/noise"
	"github.com/attache-mcp/attache/proxy/wire"
)

// tooLong is the error text for a line over the hold limit where rules enforce.
const tooLong = "refused: the message is longer than the proxy may hold to apply its rules"

// streamFromClient sends on a line over the hold limit, which begins with chunk.
func (s *session) streamFromClient(r *wire.Reader, chunk []byte) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	// A long line cannot wait behind a frame that is held back, so its direction does.
	s.awaitTurn()
	if s.c.over || s.over.Load() {
		return errOver
	}
	s.watch(ClientIn, nil)
	var env wire.Envelope
	env.Feed(chunk)
	// No layer sees the line. It may not pass if a layer enforces rules, or must remove something from
	// every message. It is still read to its end, where the next line begins, and for its id.
	if s.c.needs.Whole || s.enforces("it is longer than the hold limit") {
		s.log.Warn("a message over the hold limit was refused: rules, a required audit, and the removal of credentials must read every message; raise limits.hold or send less", "limit_bytes", s.o.Hold)
		if m := flow.Drain(wire.Client, r, &env); s.over.Load() {
			return errOver
		} else if !m.Kind().IsReply() || !s.asks.Swallow(wire.Client, m) {
			s.reportAside(m, whyLong, wire.CodeInvalidRequest)
			s.refuse(m, wire.CodeInvalidRequest, tooLong)
		}
		s.flushServer()
		return nil
	}
	if err := s.ready(); err != nil { // the upstream does not start
		s.failRequests(flow.Drain(wire.Client, r, &env), err)
		return err
	}
	if s.supervisor != nil && !s.awaitOpen() {
		if m := flow.Drain(wire.Client, r, &env); m.Kind() == wire.Request && callid.Clean(m.ID()) != nil {
			s.queue(s.link.Load().Before().Unsent(m.ID()), nil) // nothing of it was written, so the client can try again
		}
		return nil
	}
	s.watch(ServerIn, nil)
	s.sendLong(r, chunk, &env)
	return nil
}

// sendLong writes a long line to the upstream. The id may be its last member, so the call is known only
// with the last part. It is put in the table before that part is written: the upstream may reply at once.
func (s *session) sendLong(r *wire.Reader, chunk []byte, env *wire.Envelope) {
	l := s.link.Load()
	var c *call
	var failed error
	for part, more := range flow.Parts(r, chunk, env) {
		if !more {
			if s.over.Load() {
				return
			}
			m := wire.Oversize(wire.Client, env)
			s.reportAside(m, whyLong, 0)
			if env.Complete() && !s.ownID(m, nil) && m.Kind() == wire.Request && callid.Clean(m.ID()) != nil {
				c = s.calls.Add(m.ID())
				c.Sent.Store(true)
			}
		}
		if err := l.Chunk(part, more); err != nil {
			failed = err // the rest is read nevertheless: the next line begins after it
		}
	}
	if failed == nil {
		return
	}
	// Write would keep the line for the next upstream. A long line is kept nowhere, so its call fails.
	if c != nil {
		s.answer(c, wire.ErrorReply(c.ID(), wire.CodeInternalError, closedInput))
	}
	s.answerUnsent(l) // the lines before it, which Chunk has flushed
}

// streamFromServer sends on a line over the hold limit, which begins with chunk. The client gets its first
// bytes before attache has its last.
func (s *session) streamFromServer(r *wire.Reader, chunk []byte) error {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.over.Load() {
		return errOver
	}
	s.watch(ServerOut, nil)
	var env wire.Envelope
	env.Feed(chunk)
	if s.mustHold(&env) { // hooks or attache itself must read the reply, so it may not pass unread
		s.withhold(r, &env)
		return s.flushClient(true)
	}
	keep := s.o.ForwardNoise || env.CanBeMessage() && !noise.Blank(chunk)
	if keep {
		s.watch(ClientOut, nil)
	} else {
		s.noise.Add(chunk)
	}
	for part, more := range flow.Parts(r, chunk, &env) {
		if !keep {
			continue
		}
		// A server that ends in the middle of a line writes no line end. Messages of attache's own follow on the next line.
		if !more && !bytes.HasSuffix(part, []byte{'\n'}) {
			part = append(bytes.Clone(part), '\n')
		}
		if err := s.toClient.Chunk(part, more); err != nil {
			return err
		}
	}
	if env.Complete() { // else the client has half a reply, and gets an error when its call ends
		s.longReply(&env)
	}
	return s.flushClient(true)
}

// longReply tells a call's hooks that its reply has passed unheld.
func (s *session) longReply(env *wire.Envelope) {
	m := wire.Oversize(wire.Server, env)
	// An error without an id answers no call. Swallow takes a reply to a request of attache's own.
	if !m.Kind().IsReply() || m.ID() == nil || s.asks.Swallow(wire.Server, m) {
		return
	}
	c, _, _ := s.calls.Reply(m.ID())
	if c == nil { // the call was cancelled, or never made
		return
	}
	// The hooks get the message without its bytes: see wire.Message.TooLarge.
	s.hooks(&s.v.ctx, c, m, len(c.MW.Hooks())-1, false)
	s.replied(c) // the flush that follows returns the error again
}
