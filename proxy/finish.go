package proxy

import (
	"errors"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// drainTime bounds the waits for a reader that is gone or stuck at the end.
	drainTime = time.Second
	// closeTime is how long the end waits at least for what is under way and not
	// stuck.
	closeTime = 50 * time.Millisecond
)

// finish ends the upstream and answers every call. What follows the end of the upstream takes
// drainTime at most. The order: what the upstream has written, the answers of layers, what was held
// back, and an error for each call that is left.
func (s *session) finish() error {
	defer s.cancel()
	var how error
	deadline := time.Now().Add(drainTime)
	l := s.lastLink()
	if l != nil {
		deadline, how = l.End(drainTime)
		if ending := revive.NewEnding(how); l.Started() && s.continues() {
			s.watch(ServerExit, ending.ExitLine())
			if !ending.Clean() { // in a front nobody else sees how it ended
				s.log.Warn("the server has ended, and its session with it", "exit", ending.Exit)
			}
		} else if l.Started() && s.calls.Any((*call).AtWork) {
			s.watch(ServerStop, ending.StopLine()) // the answers to these calls contain it
		}
	}
	// From here on, layers get no reply to what they have asked.
	s.asks.Close()
	// In all that follows, a mutex may be held by a write to a peer that does not read, so nothing
	// waits longer than the deadline.
	tasks.RunUntil(deadline, s.c.close)
	// Work that answers calls is not cancelled at once: half of the time is for its answers, and
	// half of the rest for it to return.
	if s.goodbye.Load() {
		s.deferred.Wait(deadline.Add(-drainTime / 2))
	}
	close(s.ending) // nothing is held back any longer
	s.endDeferred()
	s.deferred.Wait(deadline.Add(-drainTime / 4))
	s.work.Wait(deadline)
	tasks.RunUntil(deadline, func() { s.endCalls(l, how) })
	s.work.Wait(deadline) // hooks of endCalls may have begun some
	tasks.RunUntil(deadline, func() { s.toClient.Flush() })
	s.close(deadline)
	s.noise.Report()
	return s.failureSoFar()
}

// close makes sure that nothing is written, watched or logged after Run has returned: work in
// either direction has ended, or is blocked in a write and ends after it.
func (s *session) close(deadline time.Time) {
	s.work.Close()
	s.deferred.Close()
	s.work.Wait(deadline)
	s.over.Store(true)
	s.toClient.Close()
	// What has the mutex now began before over was set. What gets it later sees over, and does nothing.
	if soonest := time.Now().Add(closeTime); deadline.Before(soonest) {
		deadline = soonest
	}
	for _, mu := range []*sync.Mutex{&s.v.mu, &s.c.mu} {
		tasks.RunUntil(deadline, func() { mu.Lock(); defer mu.Unlock() })
	}
	tasks.RunUntil(deadline, func() { s.toClient.Flush() })
}

// endCalls answers every call in flight, because the upstream is gone. A client that closed its
// end in good order gets the answers only if it may still read.
func (s *session) endCalls(l *revive.Link, how error) {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	err := s.failureSoFar()
	if s.over.Load() || s.goodbye.Load() && err == nil && !s.clientReads() {
		return
	}
	text := revive.EndText(how)
	if l == nil && err != nil { // no upstream was started, so none has ended
		text = failureText(err)
	}
	for _, c := range s.calls.ClaimAll((*call).AtWork) {
		s.answerClaimed(c, wire.ErrorReply(c.ID(), wire.CodeInternalError, text))
	}
}

// failureText returns the text that tells a client why its request was not handled.
func failureText(err error) string {
	switch {
	case err == nil:
		return "the request was dropped inside the proxy"
	case errors.Is(err, ErrStart), errors.Is(err, errOver):
		return err.Error()
	}
	return "the proxy could not handle the request: " + err.Error()
}
