package remote

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A lostError ends a session that the server does not know any more.
type lostError struct{ said string }

func (e lostError) Error() string { return e.said }

// SessionLost tells proxy that the server lives, and has lost this session alone.
func (lostError) SessionLost() {}

// errLost is met by a message that the server has not taken, because the session is lost.
var errLost = errors.New("the server has lost the session: it does not take the message")

// An unreachedError is that of a request of which the server has seen nothing.
type unreachedError struct{ error }

// Unwrap returns what unreachedError wraps.
func (e unreachedError) Unwrap() error { return e.error }

// isAway notes that the server could not be reached. The log has the first of such errors in a row.
func (s *Server) isAway(err error) {
	if s.away.CompareAndSwap(false, true) {
		s.log.Warn("a message did not reach the remote server", "why", err)
	}
}

// isThere notes that the server has answered.
func (s *Server) isThere() {
	if s.away.Load() && s.away.CompareAndSwap(true, false) {
		s.log.Info("the remote server can be reached again")
	}
}

// lose ends the session, which the server does not know any more. What it has not taken is
// given back, for the next session; requests under way have a moment to be answered.
func (s *Server) lose(r *refusal) {
	s.losing.Do(func() {
		s.mu.Lock()
		s.err = lostError{statusText(r.status)}
		s.mu.Unlock()
		close(s.lost)
		go s.Stop()
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

// noteRefusal keeps why a session could not be begun in place of a lost one: it is not used.
func (s *Server) noteRefusal(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.again {
		s.err = errors.New(why)
	}
}

// Returned returns the lines that a lost session has not sent, or that the server has not
// taken, and gives them up. It is called when the output has ended.
func (s *Server) Returned() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.back
	s.back = nil
	return lines
}

// giveBack keeps a line for Returned.
func (s *Server) giveBack(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = append(s.back, line...)
}

// giveBack gives the message back if it is a request that could be sent again.
func (x *exchange) giveBack() bool {
	line := x.body.bytes()
	if line == nil || x.first == nil || x.lost.Load() {
		return false
	}
	x.s.giveBack(append(line[:len(line):len(line)], '\n'))
	x.body.drop()
	x.ids = nil
	return true
}

const (
	// firstWait and longestWait bound the pause before a message is sent again to a
	// server that could not be reached.
	firstWait   = 50 * time.Millisecond
	longestWait = time.Second
)

// A waiting is that of a message for a server that cannot be reached.
type waiting struct {
	end   time.Time // zero before
	pause time.Duration
}

// isRepeatable reports whether the server may execute the message twice. Answering 503 it may have
// executed it once, whatever it says of another attempt.
func (x *exchange) isRepeatable() bool {
	line := x.body.bytes()
	if line == nil {
		return false
	}
	if x.reply || x.method == "initialize" || strings.HasPrefix(x.method, "notifications/") {
		return true // a second reply has an id that nobody waits for
	}
	var m wire.Message
	m.Reset(wire.Client, line)
	m.LookEnvelope()
	return revive.Repeatable(&m, nil)
}

// awaitServer waits before a message is sent again that the server has not seen, or refused
// with a Retry-After. It reports false when the message has waited for long enough, or the
// server has not been reached before: then the client is to know.
func (x *exchange) awaitServer(after string) bool {
	s, w := x.s, &x.wait
	if s.o.Wait <= 0 || !s.reached.Load() || x.lost.Load() {
		return false
	}
	if w.end.IsZero() {
		w.end, w.pause = time.Now().Add(s.o.Wait), firstWait
	}
	pause, left := w.pause, time.Until(w.end)
	w.pause = min(2*w.pause, longestWait)
	if seconds, err := strconv.Atoi(after); err == nil {
		if pause = max(pause, time.Duration(seconds)*time.Second); pause > left {
			return false
		}
	}
	if left <= 0 {
		return false
	}
	t := time.NewTimer(min(pause, left))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.lost:
		return true
	case <-x.ctx.Done():
		return false
	}
}
