package proxy

import (
	"errors"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Suspend implements relayed.Relay.
func (c *relayedCall) Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume relayed.Handler) {
	s := c.s
	sp := &inflight.Suspension{Message: m, Ready: ready, Limit: limit, Resume: resume}
	switch {
	// A frame that is not a call cannot wait, and the members of a batch leave together.
	case c == &s.c.none, c == &s.v.none, m.From == wire.Client && c.Batch != nil:
		resume(&relayed.Context{Context: s.ctx, Call: &c.MW}, m)
	case m.From == wire.Server:
		if !m.TooLarge() { // one that is too large has passed, and cannot wait: see longReply
			sp.Message = m.Clone()
		}
		c.Suspended = sp // for hooks, which called the one that calls this
	case s.isEnding() || !s.work.Begin():
		s.answer(&c.call, wire.ErrorReply(c.ID(), wire.CodeInternalError, failureText(errOver)))
	default:
		sp.Message = m.Clone()
		c.Holding, s.c.held = true, true
		go s.resumeCall(sp, &c.call)
	}
}

// isEnding reports whether the upstream is gone for good, so that nothing is held back any longer.
func (s *session) isEnding() bool {
	select {
	case <-s.ending:
		return true
	default:
		return false
	}
}

// resumeCall lets a suspended call continue, and then the frames behind it.
func (s *session) resumeCall(sp *inflight.Suspension, c *call) {
	defer s.work.End()
	sp.Wait(s.ending)
	d := &s.c
	d.mu.Lock()
	defer d.mu.Unlock()
	// Before the handler runs, which may hold the call back again.
	c.Holding, d.held = false, false
	s.resumeWaiting(s.runHandler(&c.MW, sp.Resume, sp.Message))
}

// resumeWaiting handles the frames behind one that was held back. err is the error of that one. The
// caller holds c.mu.
func (s *session) resumeWaiting(err error) {
	d := &s.c
	// The frame that was resumed, or one behind it, may be held back again: then the rest waits for
	// that.
	for err == nil && !d.held && len(d.waiting) > 0 {
		m := d.waiting[0]
		if s.holdForRoom(m); d.held {
			break
		}
		// The array of waiting is used until append needs another one.
		d.waiting[0], d.waiting = nil, d.waiting[1:]
		d.bytes -= len(m.Line())
		err = s.handle(m)
	}
	if err != nil { // the session ends, and nobody else has these frames
		s.fail(err)
		for _, m := range d.waiting {
			s.failRequests(m, err)
		}
		d.waiting, d.bytes = nil, 0
	}
	s.flushServer()
	if !d.held && d.release != nil {
		close(d.release)
		d.release = nil
	}
}

// holdReply holds a reply back, and then runs the hooks from index i down on it. It reports
// false if the reply cannot wait: the session is over, or the replies that wait would exceed the
// hold limit.
func (s *session) holdReply(sp *inflight.Suspension, c *call, i int) bool {
	size := int64(len(sp.Message.Line()))
	// Many replies may be held back at once, unlike frames of the client, so their size is bounded.
	if s.held.Add(size) > int64(s.o.Hold) || !s.work.Begin() {
		s.held.Add(-size)
		return false
	}
	go func() {
		defer s.work.End()
		defer s.held.Add(-size)
		s.resumeReply(sp, c, i)
	}()
	return true
}

// resumeReply waits until a reply may continue. A layer may ask to wait again, except at the end
// of the session, so it cannot wait forever.
func (s *session) resumeReply(sp *inflight.Suspension, c *call, i int) {
	ctx := &relayed.Context{Context: s.ctx, Call: &c.MW}
	for left := maxInline; sp != nil; {
		sp.Wait(s.ending)
		if s.isEnding() {
			left--
		}
		sp = s.resumeOnce(ctx, sp, c, i, left > 0)
	}
}

// resumeOnce returns what to wait for if the layer wants to wait again, and may.
func (s *session) resumeOnce(ctx *relayed.Context, sp *inflight.Suspension, c *call, i int, again bool) *inflight.Suspension {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.over.Load() {
		return nil
	}
	m := s.hook(ctx, c, sp.Resume, sp.Message)
	next := c.Suspended
	c.Suspended = nil
	if next != nil && again {
		return next
	}
	// An error comes again with the next write of the server's direction, which ends the session.
	s.answered(ctx, c, m, i)
	s.flushClient(true)
	return nil
}

// runHandler runs a handler on a message, and answers a request that the handler neither sent on
// nor answered. The caller holds c.mu.
func (s *session) runHandler(mw *relayed.Call, h middleware.Handler, m *wire.Message) error {
	if s.over.Load() {
		return errOver
	}
	ctx := &s.c.ctx
	ctx.Call = mw
	err := s.protect(ctx, h, m)
	s.ensureAnswered(&mw.Relay().(*relayedCall).call, err)
	if errors.Is(err, errPanic) {
		return nil // one call has failed, and the session goes on
	}
	return err
}
