package remote

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A lostError is the error of a session that the server no longer knows.
type lostError struct{ said string }

func (e lostError) Error() string { return e.said }

// SessionLost tells package proxy that the server is running and has lost only this session.
func (lostError) SessionLost() {}

// errLost is returned for a message that the server did not accept because the session is lost.
var errLost = errors.New("the server has lost the session: it does not take the message")

// logUnreached logs that the server could not be reached, once until it is reached again.
func (s *Server) logUnreached(err error) {
	if s.unreachable.CompareAndSwap(false, true) {
		s.log.Warn("a message did not reach the remote server", "why", err)
	}
}

// logReached logs that the server can be reached again.
func (s *Server) logReached() {
	if s.unreachable.Load() && s.unreachable.CompareAndSwap(true, false) {
		s.log.Info("the remote server can be reached again")
	}
}

// lose ends the session because the server no longer knows it. Messages that the server has not
// accepted are returned for the next session. Requests in flight may still be answered for a moment.
func (s *Server) lose(r *refusal) {
	// Many requests may learn it at once.
	s.loseOnce.Do(func() {
		s.mu.Lock()
		s.err = lostError{statusText(r.status)}
		s.mu.Unlock()
		close(s.lost)
		go s.Stop() // it waits for the exchange that has called lose
	})
}

func (s *Server) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// noteRefusal records why a session that replaces a lost one could not begin.
func (s *Server) noteRefusal(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.resumed {
		s.err = errors.New(why)
	}
}

// Returned returns the lines that a lost session has not sent or that the server has not accepted. It
// is called after the end of the output. The relay writes them to the session that it opens in place of
// this one. A request among them was not executed.
func (s *Server) Returned() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.returned
	s.returned = nil
	return lines
}

// giveBack adds a line to those of Returned.
func (s *Server) giveBack(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, line...)
}

// giveBack adds the message to those of Returned if it is a request that can be sent again.
func (x *exchange) giveBack() bool {
	line := x.body.bytes()
	// A request only: a reply belongs to a request of the session that is lost, and the relay itself repeats the
	// handshake.
	if line == nil || x.first == nil || x.cancelled.Load() {
		return false
	}
	x.s.giveBack(append(line[:len(line):len(line)], '\n'))
	x.body.drop()
	x.ids = nil // nothing here answers them
	return true
}

const (
	// firstWait and longestWait bound the pause before a message is sent again to a
	// server that could not be reached.
	firstWait   = 50 * time.Millisecond
	longestWait = time.Second
)

// A retry says when a message is sent again to a server that could not be reached.
type retry struct {
	end   time.Time     // of all attempts; zero before the first. Options.Wait is for all of them together
	pause time.Duration // before the next attempt, unless the server names a longer one
}

// isRepeatable reports whether the message may be executed twice: a server that answers 503 may have
// executed it, even if it invites another attempt.
func (x *exchange) isRepeatable() bool {
	line := x.body.bytes()
	if line == nil {
		return false
	}
	if x.reply || x.method == "initialize" || strings.HasPrefix(x.method, "notifications/") {
		return true // a second reply is ignored, a second session is not used, and a notification executes nothing
	}
	return revive.Repeatable(wire.Parse(wire.Client, line), nil)
}

// awaitServer waits before a message is sent again that the server has not received, or has refused
// with Retry-After. It reports false if the message has waited long enough or the server was never
// reached; then the client gets an error.
func (x *exchange) awaitServer(after string) bool {
	s, w := x.s, &x.retry
	// A server that was never reached may have a wrong address: the user must see that at once.
	if s.o.Wait <= 0 || !s.reached.Load() || x.cancelled.Load() {
		return false
	}
	if w.end.IsZero() {
		w.end, w.pause = time.Now().Add(s.o.Wait), firstWait
	}
	pause, left := w.pause, time.Until(w.end)
	// For the next attempt; this one waits for pause.
	w.pause = min(2*w.pause, longestWait)
	if seconds, err := strconv.ParseUint(after, 10, 31); err == nil {
		pause = max(pause, time.Duration(seconds)*time.Second)
	} else if date, err := http.ParseTime(after); err == nil {
		pause = max(pause, time.Until(date))
	}
	// A server that names a time beyond the wait is not waited for at all: the client learns it now.
	if left <= 0 || after != "" && pause > left {
		return false
	}
	select {
	case <-time.After(min(pause, left)):
		return true
	case <-s.lost:
		return true // do then returns errLost
	case <-x.ctx.Done():
		return false
	}
}
