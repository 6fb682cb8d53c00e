package proxy

import (
	"time"

	"github.com/attache-mcp/attache/proxy/internal/hangup"
)

// clientReads reports whether a client that has closed its end may still read. One that pushes its
// lines ends its session when it does not.
func (s *session) clientReads() bool {
	return (s.o.ClientLines == nil || s.o.ClientReads != nil) && hangup.Reads(s.o.ClientReads, time.Now())
}

// awaitAnswers returns when a client that has closed its end no longer waits for answers, or the
// session has to end. A server that is down is not started again for it (R3).
func (s *session) awaitAnswers() {
	if l := s.link.Load(); s.clientReads() && (l == nil || l.Gate.IsOpen()) {
		hangup.AwaitAnswers((*parting)(s), s.o.ClientReads, s.going.Done())
	}
}

// watchClient ends the session of a client that has hung up while its direction waits for an
// upstream that does not read.
func (s *session) watchClient() {
	if hangup.AwaitStall((*parting)(s), s.o.ClientGone, s.o.ClientReads, s.going.Done(), s.ending) && !s.heard.Load() {
		s.fail(ErrClientGone)
	}
}

// A parting is a session whose client has closed its end. It implements hangup.Session.
type parting session

func (p *parting) Settled() <-chan struct{} { return p.calls.settled() }
func (p *parting) Stuck() int64             { return p.toClient.Stuck() }
func (p *parting) Moved() int64             { return p.link.Load().Moved() }

// Unanswered implements hangup.Session. A subscription ends with its client.
func (p *parting) Unanswered() bool { return p.calls.any(func(c *call) bool { return !c.listens }) }

// Holds implements hangup.Session. While the client's direction waits for an upstream that does
// not read, no frame is held back.
func (p *parting) Holds() bool {
	if !p.c.mu.TryLock() {
		return false
	}
	defer p.c.mu.Unlock()
	return p.c.held
}
