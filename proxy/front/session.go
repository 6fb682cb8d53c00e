package front

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/inbox"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/front/internal/revision"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// sent returns the raw id that the relay knows.
func (c *call) sent() []byte {
	if c.name != nil {
		return c.name.ID
	}
	return c.Raw
}

// errClosed is returned for a message to a closed session.
var errClosed = inbox.ErrClosed

// open makes a session and starts its relay. The caller holds f.mu and has counted the session
// against the limits. All fields that the relay reads without s.mu are set before it starts.
func (f *Front) open(id, key string, o Opening) (*session, error) {
	s := &session{
		f: f, id: id, key: key, who: o.Who, in: inbox.New(),
		calls: map[string]*call{}, tokens: map[string]*call{}, lastUsed: time.Now(),
	}
	o.Request, o.Label = s.request, s.label()
	if id != "" && f.keeper != nil {
		// The principal is a part of the key: with the id alone, nobody finds the session.
		s.entry = f.keeper.New(sessions.NewKey(id, o.Who.ID))
		o.Session = s.entry.Key.ID
	}
	relay, err := f.o.Open(o)
	if err != nil {
		return nil, err
	}
	s.seen, s.log = relay.Seen, cmp.Or(relay.Options.Log, f.log.With("client", s.label()))
	s.mu.Lock()
	s.timer = time.AfterFunc(f.o.Idle, s.expire) // under mu, because expire may run at once
	s.mu.Unlock()
	ro := relay.Options
	ro.ClientLines, ro.ClientOut = s.in, &output{s: s}
	// The context is not that of a request, because the relay serves all requests of the session.
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	f.relays.Add(1)
	go s.run(ctx, ro, relay.Closed)
	return s, nil
}

// request returns the HTTP request of the call with a raw id, nil if there is none.
func (s *session) request(id []byte) *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.callLocked(id); c != nil {
		return c.request
	}
	return nil
}

// run runs the relay, and ends with it. It closes the session if the relay has ended by itself, as when the
// server has exited. The order matters: the embedding program releases its resources before the calls are
// answered, and another process may have the session only when this upstream is gone.
func (s *session) run(ctx context.Context, o proxy.Options, closed func()) {
	defer s.f.relays.Done()
	defer s.stop()
	err := proxy.Run(ctx, o)
	if closed != nil {
		closed()
	}
	// Calls in flight when the relay returns have had no answer from it.
	text := "the session is over"
	if err != nil {
		text += ": " + err.Error()
	}
	s.close(text, s.reasonRelayEnded())
	s.mu.Lock()
	s.timer.Stop() // a running timer would keep the session's memory
	s.mu.Unlock()
	s.handOver()
}

// expire ends the session if it has been idle for Options.Idle. If not, it sets the timer for the
// earliest time at which that can be.
func (s *session) expire() {
	s.mu.Lock()
	left := s.f.o.Idle
	if s.refused == s.number && s.refused > 0 { // clients only probed; they use an earlier revision, in another session
		left = min(left, restTime)
	}
	if s.users == 0 {
		left -= time.Since(s.lastUsed)
	}
	if left > 0 && !s.closed {
		s.timer.Reset(left)
	}
	idle := left <= 0 && !s.closed
	s.mu.Unlock()
	if idle {
		s.log.Info("a session that nobody used was ended")
		s.end("the session was idle for too long")
	}
}

// endUnused ends the session after restTime, unless its client uses it before. The timer is not stopped when
// the session ends otherwise: it then finds the session closed, and does nothing.
func (s *session) endUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A session that was used meanwhile has another lastUsed.
	used := s.lastUsed
	time.AfterFunc(restTime, func() {
		s.mu.Lock()
		unused := s.users == 0 && s.lastUsed.Equal(used)
		s.mu.Unlock()
		if unused {
			s.end("the client left while the session was opened")
		}
	})
}

// label names the session in the log without giving its id away.
func (s *session) label() string {
	if s.id != "" {
		return s.id[:8]
	}
	return "2026-07-28"
}

// use marks the session as used by an HTTP request, until release. It reports false if the session is
// closed.
func (s *session) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.users++
	return true
}

// crowded reports whether the session has more requests in flight than its limit. GET streams are requests
// too, and must not use up the places of calls.
func (s *session) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users > s.f.o.Limits.PerSession()+maxGets
}

func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.lastUsed = time.Now() // expire measures from here
	}
}

// end closes the session for good. It does not wait for the relay. Calls in flight are answered with
// an error, text.
func (s *session) end(text string) { s.close(text, reasonEnded) }

// close is closeLocked for a caller that does not hold f.mu.
func (s *session) close(text string, why closeReason) (closed bool) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.closeLocked(text, why)
}

// closeLocked takes the session out of the tables, ends its relay and answers the calls in flight with
// text. It reports false if why is reasonIdle and a call is running; this look and the closing are one step
// under s.mu, so no call is added in between. The second and later calls do nothing. It does not block, because
// the caller holds f.mu, which all requests of the front need.
func (s *session) closeLocked(text string, why closeReason) (closed bool) {
	s.mu.Lock()
	if s.closed || why == reasonIdle && len(s.runningLocked()) > 0 {
		defer s.mu.Unlock()
		return s.closed
	}
	// From here on, use and add refuse.
	s.closed = true
	s.f.o.Limits.Close(s.who.ID)
	s.timer.Stop()
	gets := s.gets
	for _, c := range s.calls {
		s.answerLocked(c, text)
	}
	s.gets, s.pending = nil, nil
	s.mu.Unlock()
	// A handler that reads a stream reads it to the end, where the answer is.
	s.recorder.Forget()
	delete(s.f.byID, s.id)
	delete(s.f.byKey, s.key)
	s.recordClose(why)
	// The relay sees the end of its client, ends the upstream, and returns: see run.
	s.in.Close()
	// If the upstream does not read, the relay does not get to the end of its input.
	s.stopStalled(-1)
	for _, t := range gets {
		t.Close()
	}
	return true
}

// stallTime is how long the relay of a closed session may read nothing of the input that is left.
const stallTime = 1500 * time.Millisecond

// stopStalled stops a relay that does not reach the end of its input because its upstream does not
// read. before is how many bytes of input were left stallTime ago, -1 at first. It looks again as long as the
// upstream reads something: a slow one may read all of its input.
func (s *session) stopStalled(before int) {
	left := s.in.Left()
	switch left {
	case 0:
	case before:
		s.stop()
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timer = time.AfterFunc(stallTime, func() { s.stopStalled(left) })
	}
}

// answerLocked answers a call with an error, and removes it. It uses Force, which does not block and needs no
// room: s.mu is held, and a full stream must get its end too. The caller holds s.mu.
func (s *session) answerLocked(c *call, text string) {
	// With the id that the client gave the call, also if the relay knows it by another.
	reply := wire.ErrorReply(c.Raw, wire.CodeInternalError, text).Frame()
	closes := s.dropLocked(c)
	c.stream.Force(outbox.Item{Data: reply, Final: closes, Failed: true}, closes)
}

// awaitCalls returns when no call is running, or ctx is done. A call may be added right after it, so the caller
// has to look again: see releaseIdle.
func (s *session) awaitCalls(ctx context.Context) {
	s.mu.Lock()
	if len(s.runningLocked()) == 0 || s.closed {
		s.mu.Unlock()
		return
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// signalIdleLocked wakes the callers of awaitCalls if no call is running. The caller holds s.mu.
func (s *session) signalIdleLocked() {
	if s.idle != nil && len(s.runningLocked()) == 0 {
		close(s.idle)
		s.idle = nil
	}
}

// errInUse is returned for a call whose id or progress token another one has.
var errInUse = errors.New("another request that is not answered yet has the same id or progress token")

// add adds the calls of a message before it is sent, because the reply may come before Inbox.Put returns. If one
// of their ids or progress tokens is in use, or belongs to an abandoned call, it returns errInUse and adds no
// call. An id may be used again after its reply, although revisions up to 2025-11-25 forbid that (basic,
// "Requests").
func (s *session) add(calls []*call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	for i, c := range calls {
		if slices.ContainsFunc(calls[:i], func(other *call) bool { return other.id == c.id }) || s.calls[c.id] != nil || c.token != "" && s.tokens[c.token] != nil || s.abandoned.Has(c.id, c.token) {
			return errInUse
		}
	}
	// Record only a stream with one call, because the ids of its events name the request that they answer.
	if calls[0].stream.Events() && len(calls) == 1 && revision.Resumes(s.version) {
		calls[0].Recorder = &s.recorder
	}
	for _, c := range calls {
		s.calls[c.id] = c
		c.stream.calls++
		s.number++
		c.number = s.number
		if c.token != "" {
			s.tokens[c.token] = c
		}
	}
	// The waiting messages come before the reply, because the relay does not have the message yet.
	if t := &calls[0].stream.Stream; t.Events() {
		s.deliverToCallLocked(t)
	}
	return nil
}

// dropLocked removes a call, and reports whether its stream has no other call, so that the reply ends the stream.
// From here on the client may use the id again, which it does as soon as it has the reply. The caller holds s.mu.
func (s *session) dropLocked(c *call) (closes bool) {
	delete(s.calls, c.id)
	if c.token != "" && s.tokens[c.token] == c {
		delete(s.tokens, c.token)
	}
	s.signalIdleLocked()
	c.stream.calls--
	return c.stream.calls <= 0
}
