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

// awaitAnswers returns when a client that has closed its end no longer waits for answers and the server no
// longer waits for the client to read, or when the session has to end. A server that is down is not started
// again for it (R3).
func (s *session) awaitAnswers() {
	// Without an upstream, layers may still be answering calls.
	if l := s.link.Load(); s.clientReads() && (l == nil || l.Gate.IsOpen()) {
		hangup.AwaitAnswers((*clientEnd)(s), s.o.ClientReads, s.going.Done())
		if l != nil {
			hangup.AwaitReader(s.toClient.Busy, s.o.ClientReads, l.Ended(), s.going.Done())
		}
	}
}

// watchClient ends the session of a client that has hung up while its direction waits for an
// upstream that does not read.
func (s *session) watchClient() {
	if hangup.AwaitStall((*clientEnd)(s), s.o.ClientGone, s.o.ClientReads, s.going.Done(), s.ending) && !s.heard.Load() {
		s.fail(ErrClientGone)
	}
}

// A clientEnd is a session whose client has closed its end. It implements hangup.Session.
type clientEnd session

func (e *clientEnd) Settled() <-chan struct{} { return e.calls.Settled() }
func (e *clientEnd) Moved() int64             { return e.link.Load().Moved() }

// Written implements hangup.Session. A client that reads slowly holds up the write. It does not take v.mu, which
// the server's direction also holds while the server is within a long line.
func (e *clientEnd) Written() <-chan struct{} {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = e.toClient.Flush() // an error is that of the next write, too
	}()
	return written
}

// Unanswered implements hangup.Session. A subscription ends with its client.
func (e *clientEnd) Unanswered() bool {
	return e.calls.Any(func(c *call) bool { return !c.Listens.Load() })
}

// Holds implements hangup.Session. While the client's direction waits for an upstream that does
// not read, no frame is held back. One that waits for room does not count: it may wait forever.
func (e *clientEnd) Holds() bool {
	// The direction that this asks about holds the mutex while it waits, so do not wait for it.
	if !e.c.mu.TryLock() {
		return false
	}
	defer e.c.mu.Unlock()
	return e.c.held && !e.c.crowded
}

// Blocked implements hangup.Session. Without the mutex, the direction waits for the next frame of the
// client, or for its end, if no frame is held back.
func (e *clientEnd) Blocked() bool {
	if e.backlog.Full() != nil {
		return true
	}
	if e.c.mu.TryLock() {
		defer e.c.mu.Unlock()
		return e.c.held
	}
	l := e.link.Load()
	return l == nil || !l.In.Ready()
}
