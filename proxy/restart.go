package proxy

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

// newSupervisor returns the supervisor that starts the upstream of a session again.
func newSupervisor(s *session, r Restart) *revive.Supervisor {
	r.Wanted = s.continues // which asks the Wanted of the options
	return revive.New((*relay)(s), revive.Policy(r), revive.Options{Link: s.linkOptions(), Asks: s.asks, Go: s.goBeside, Log: s.log})
}

// continues reports whether the session goes on if the upstream has ended: neither the client, nor an
// error, nor a signal has ended it.
func (s *session) continues() bool {
	r := s.o.Restart
	return !s.goodbye.Load() && s.failureSoFar() == nil && s.ctx.Err() == nil && (r == nil || r.Wanted == nil || r.Wanted())
}

// linkOptions returns how a link of the session works.
func (s *session) linkOptions() revive.LinkOptions {
	// The first link needs no Hold, because its gate is opened at once. The supervisor sets that of the others.
	o := revive.LinkOptions{Count: s.o.Restart != nil && s.o.Restart.Hang > 0, Limit: s.o.Hold, Expired: s.holdExpired}
	if s.o.Watch != nil {
		o.Watch = func(line []byte) { s.watch(ServerIn, line) }
	}
	return o
}

// supervise returns when the upstream has ended for good, or the session has to end.
func (s *session) supervise() {
	defer s.leave()
	select {
	case <-s.going.Done():
	case l := <-s.started:
		if s.supervisor != nil {
			s.supervisor.Run(s.going, l)
			return
		}
		select {
		case <-l.Ended():
		case <-s.going.Done():
		}
	}
}

// A relay is a session as its supervisor sees it.
type relay session

// Start implements revive.Relay.
func (r *relay) Start(l *revive.Link) error {
	up, err := r.o.Start(r.going)
	if err != nil {
		return err
	}
	if next, ok := up.(interface{ Again() }); ok {
		next.Again()
	}
	l.Connect(up)
	(*session)(r).watch(ServerStart, l.StartLine()) // before the first line of the server
	l.Read(serverLines{(*session)(r)})
	return nil
}

// Send implements revive.Relay.
func (r *relay) Send(to wire.Peer, m *wire.Message) { (*session)(r).send(to, m) }

// Awaits implements revive.Relay.
func (r *relay) Awaits(id []byte) bool {
	if id == nil {
		return r.calls.Any(func(c *call) bool { return c.AwaitsReply() && !c.Listens.Load() })
	}
	return r.calls.Awaits(id)
}

// Replace implements revive.Relay. What did not reach the last upstream, and what may be
// repeated, waits for the next; the other calls in flight are answered with an error
// (rules R8 and R9 of docs/restart.md).
func (r *relay) Replace(ctx context.Context, last, next *revive.Link, how revive.Ending) (lost int) {
	s := (*session)(r)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if ctx.Err() != nil { // the session ended while this waited for mu
		return 0
	}
	// With mu held, nothing of the client is written, so these are all of its lines.
	left, deadline := last.Leftover(s.supervisor.Hold())
	returned := last.Returned()
	if last.Started() {
		s.watch(ServerExit, how.ExitLine(returned, left))
	}
	// Each of these lines stands for another call, also if two have the same id: so a call that a
	// line was found for is not found again.
	// The youngest is taken: an older call with the same id was written before it.
	unsent := map[*call]bool{}
	awaits := func(id []byte) *call {
		c := s.calls.Youngest(id, unsent)
		if c != nil {
			unsent[c] = true
			s.supervisor.Resends(&c.MW) // no reply can come now, so a hook may still be added
		}
		return c
	}
	var refused []*call // twice
	lines := revive.Resend(returned, func(id []byte) bool {
		c := awaits(id)
		if c == nil {
			return false
		}
		// Two upstreams in a row have not taken it, so a third one is not tried.
		if c.Returned {
			refused = append(refused, c)
		}
		c.Returned = true
		return !slices.Contains(refused, c)
	})
	lines = append(lines, revive.Resend(left, func(id []byte) bool { return awaits(id) != nil })...)
	again, running := s.claimRunning(unsent)
	// In the order in which the client sent them: the calls that are repeated came before those
	// that never arrived.
	next.Gate.Keep(slices.Concat(again, lines), deadline)
	// The client's direction writes to the next upstream as soon as mu is free, behind the lines
	// that are kept.
	s.link.Store(next)
	last.Gate.Replaced()
	for _, c := range running {
		s.unseen.Add(c.ID()) // the next upstream has not seen it
		s.answerClaimed(c, how.Lost(c.ID(), c.Frame != nil))
	}
	for _, c := range s.calls.ClaimAll(func(c *call) bool { return slices.Contains(refused, c) }) {
		s.answerClaimed(c, how.Unsent(c.ID()))
	}
	return len(running)
}

// claimRunning claims the calls that the last upstream may have run, except those that are sent
// again, whose lines it returns.
func (s *session) claimRunning(unsent map[*call]bool) (again []byte, running []*call) {
	var repeated []*call
	running = s.calls.ClaimAll(func(c *call) bool {
		if !c.Sent.Load() || unsent[c] { // a call that is not sent yet goes to the next upstream by itself
			return false
		}
		if c.Frame != nil && s.supervisor.Repeats(c.ID(), c.Frame, c.Again) {
			repeated = append(repeated, c)
			return false
		}
		return true
	})
	slices.SortFunc(repeated, inflight.ByArrival) // the function was called in the order of a map
	for _, c := range repeated {
		c.Again = true
		if wire.Parse(wire.Client, c.Frame).MethodIs("tools/call") {
			s.supervisor.Resends(&c.MW) // no reply can come now, so a hook may still be added
		}
		again = append(again, c.Frame...)
	}
	return again, running
}

// keepsBack handles a request or notification of the upstream, and reports whether the client
// must not see it. The caller holds v.mu.
func (s *session) keepsBack(m *wire.Message) bool {
	if m.Kind() == wire.Request {
		s.v.lookWhole(m)
	}
	drop, less := s.supervisor.KeepsBack(m)
	if less != nil { // end the subscription on both sides, so that the client subscribes again
		params := revive.LessParams(less)
		s.send(wire.Server, wire.NewNotification(wire.Client, "notifications/cancelled", params))
		s.calls.CancelListen(less)
		s.send(wire.Client, wire.NewNotification(wire.Server, "notifications/cancelled", params))
	}
	return drop
}

// takesReply handles a reply of the client if it is for attache, or for an upstream that has
// ended, and reports whether it is.
func (s *session) takesReply(m *wire.Message) bool {
	return s.supervisor != nil && s.supervisor.LeftBehind(m) || s.asks.Swallow(wire.Client, m)
}

// holdExpired answers the calls that have waited for an upstream for too long.
func (s *session) holdExpired(l *revive.Link) {
	lines, _ := l.Gate.TakeKept()
	s.answerAside(func() {
		for line := range bytes.Lines(lines) {
			s.answerLine(line, l.Before().Unsent)
		}
	})
}

// awaitOpen waits until frames reach the upstream, because a line over the hold limit cannot be
// kept. It reports false if that takes too long. The caller holds c.mu, which is released
// meanwhile.
func (s *session) awaitOpen() bool {
	late := time.After(s.supervisor.Hold())
	for l := s.link.Load(); !l.Gate.IsOpen(); l = s.link.Load() {
		// Await returns at once for a gate that was open before: then Replace, which stores the next
		// link, is about to get mu, or the session ends.
		s.c.mu.Unlock()
		settled := l.Gate.Await(late, s.ending)
		s.c.mu.Lock()
		if !settled {
			return false
		}
	}
	return true
}
