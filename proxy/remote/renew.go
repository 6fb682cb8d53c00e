package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A renewal is one attempt to begin a lost session again. All who need it wait for it.
type renewal struct {
	done  chan struct{}
	begun bool // the session has begun again
	err   error
}

// renewTime is how long a session may take to begin again.
const renewTime = 30 * time.Second

// errOtherServer ends a session that begins again as another than the client knows.
var errOtherServer = errors.New("the server has lost the session, and what it offers in a new one is not the same: start the client's session again")

// renew begins the session of a generation again that the server has lost, unless that
// was done. It reports whether there is a session now.
func (s *Server) renew(ctx context.Context, generation int) (bool, error) {
	v := &s.session
	v.mu.Lock()
	if v.generation != generation {
		v.mu.Unlock()
		return true, nil
	}
	if v.initialize == nil {
		v.mu.Unlock()
		return false, nil
	}
	r := v.renewal
	if r == nil {
		r = &renewal{done: make(chan struct{})}
		v.renewal = r
		go s.initializeAgain(r, generation)
	}
	v.mu.Unlock()
	select {
	case <-r.done:
		return r.begun, r.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// initializeAgain begins the session again with what the client had sent.
func (s *Server) initializeAgain(r *renewal, generation int) {
	ctx, cancel := context.WithTimeout(s.ctx, renewTime)
	defer cancel()
	err := s.openSession(ctx, generation)
	v := &s.session
	v.mu.Lock()
	v.renewal = nil
	v.mu.Unlock()
	r.begun, r.err = err == nil, err
	if errors.Is(err, errOtherServer) {
		s.fail(err) // before those who wait could answer in place of the relay
	}
	close(r.done)
	switch {
	case errors.Is(err, errOtherServer):
	case err != nil:
		s.log.Warn("the remote server has lost the session, and it could not be begun again", "why", err)
	default:
		s.log.Info("the remote server had lost the session; it was begun again")
		for _, method := range v.announces() {
			s.out.write(wire.NewNotification(wire.Server, method, nil).Line())
		}
	}
}

// openSession sends the client's initialize, and what it had sent after it that the
// server is to know.
func (s *Server) openSession(ctx context.Context, generation int) error {
	v := &s.session
	v.mu.Lock()
	initialize := bytes.Clone(v.initialize)
	v.mu.Unlock()
	reply, header, err := s.ask(ctx, initialize, http.Header{})
	if err != nil {
		return fmt.Errorf("the server has lost the session, and it could not be begun again: %w", err)
	}
	if reply.Kind() != wire.Result {
		return fmt.Errorf("the server has lost the session and refuses another: %s", elided(reply.ErrorObject().Get("message").Text()))
	}
	if !v.agree(reply.Result(), generation) {
		return errOtherServer
	}
	v.mu.Lock()
	t := ticket{version: v.version, generation: generation + 1}
	if id := header.Get("Mcp-Session-Id"); visible(id) && len(id) <= maxSessionID {
		t.id = id
	}
	v.mu.Unlock()
	for _, line := range v.replay() {
		h := http.Header{}
		t.headers(h)
		if _, _, err := s.ask(ctx, line, h); err != nil {
			s.log.Warn("a message that the lost session had was not taken by the new one", "why", err)
		}
	}
	v.mu.Lock()
	overtaken := v.generation != generation // the client has begun another session meanwhile
	if !overtaken {
		v.id, v.generation = t.id, t.generation
	}
	v.mu.Unlock()
	if overtaken {
		s.endSession(t, farewell)
		return errors.New("the server has lost the session, and it could not be begun again: the client has begun another session")
	}
	s.listen.start(s, t)
	return nil
}

// ask sends a message of our own, and returns the reply to it, nil for a notification.
// What the server says before it goes to the client.
func (s *Server) ask(ctx context.Context, line []byte, h http.Header) (*wire.Message, http.Header, error) {
	var m wire.Message
	m.Reset(wire.Client, line)
	m.LookEnvelope()
	h["Accept"] = []string{"application/json, text/event-stream"}
	h["Content-Type"] = []string{"application/json"}
	resp, err := s.send(ctx, http.MethodPost, h, &body{line: line})
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return nil, nil, fmt.Errorf("the server answered %s: %s", statusText(resp.StatusCode), elided(string(readRefusal(resp).text)))
	}
	if m.Kind() != wire.Request {
		drain(resp)
		return nil, resp.Header, nil
	}
	from, err := decoded(resp)
	if err != nil {
		return nil, nil, err
	}
	t := &replyTaker{s: s, id: m.ID()}
	t.f.out, t.f.ours = &s.out, true
	defer t.f.reset()
	if isEvents(resp.Header) {
		err = t.f.each(&untilReply{from, t}, newEventParser(t).feed)
	} else {
		err = t.f.each(from, t.f.add)
		t.event(nil)
	}
	if t.reply == nil && err == nil {
		err = errors.New("its answer has no reply")
	}
	if t.reply == nil {
		return nil, nil, err
	}
	return t.reply, resp.Header, nil
}

// A replyTaker takes the reply to a request of our own, and passes all else on.
type replyTaker struct {
	s     *Server
	id    []byte
	f     frame
	reply *wire.Message
}

func (t *replyTaker) data(b []byte) { t.f.put(b) }

func (t *replyTaker) event(name []byte) {
	m := t.f.end()
	switch {
	case m == nil || len(name) > 0 && string(name) != "message":
		t.f.reset()
	case m.Kind().IsReply():
		if whole := t.f.whole(m); whole != nil && bytes.Equal(whole.ID(), t.id) {
			t.reply = whole.Clone()
		}
		t.f.reset()
	default:
		t.f.deliver()
	}
}

// untilReply is a stream that ends with the reply.
type untilReply struct {
	from interface{ Read([]byte) (int, error) }
	t    *replyTaker
}

func (u *untilReply) Read(b []byte) (int, error) {
	if u.t.reply != nil {
		return 0, errAnswered
	}
	return u.from.Read(b)
}

// errAnswered ends the reading of a stream whose reply has come.
var errAnswered = errors.New("the reply has come")
