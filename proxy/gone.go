package proxy

import "github.com/attache-mcp/attache/proxy/internal/hangup"

// clientReads reports whether a client that has closed its end may still read. One that pushes its
// lines ends its session when it does not.
func (s *session) clientReads() bool {
	if s.o.ClientReads == nil {
		return s.o.ClientLines == nil
	}
	return s.o.ClientReads()
}

// awaitAnswers returns when a client that has closed its end no longer waits for answers, or the
// session has to end. A server that is down is not started again for it (R3).
func (s *session) awaitAnswers() {
	if l := s.link.Load(); s.clientReads() && (l == nil || l.Gate.IsOpen()) {
		hangup.AwaitAnswers((*leaving)(s), s.o.ClientReads, s.going.Done())
	}
}

// watchClient ends the session of a client that has hung up while its direction waits for an
// upstream that does not read.
func (s *session) watchClient() {
	if hangup.AwaitStall((*leaving)(s), s.o.ClientGone, s.o.ClientReads, s.going.Done(), s.ending) && !s.heard.Load() {
		s.fail(ErrClientGone)
	}
}

// A leaving is a session whose client has closed its end. It implements hangup.Session.
type leaving session

func (l *leaving) Settled() <-chan struct{} { return l.calls.Settled() }
func (l *leaving) Moved() int64             { return l.link.Load().Moved() }

// Unanswered implements hangup.Session. A subscription ends with its client.
func (l *leaving) Unanswered() bool {
	return l.calls.Any(func(c *call) bool { return !c.Listens.Load() })
}

// Holds implements hangup.Session. While the client's direction waits for an upstream that does
// not read, no frame is held back. One that waits for room does not count: it may wait forever.
func (l *leaving) Holds() bool {
	// The direction that this asks about holds the mutex while it waits, so do not wait for it.
	if !l.c.mu.TryLock() {
		return false
	}
	defer l.c.mu.Unlock()
	return l.c.held && !l.c.crowded
}
