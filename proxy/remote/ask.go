package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/attache-mcp/attache/proxy/remote/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// ask sends a message of our own, and returns the reply to it, nil for a notification.
// What the server says before it goes to the client.
func (s *Server) ask(ctx context.Context, line []byte, h http.Header) (*wire.Message, http.Header, error) {
	var m wire.Message
	m.Reset(wire.Client, line)
	m.LookEnvelope()
	h["Accept"], h["Content-Type"] = acceptsBoth, isJSON
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
	t.f.Out, t.f.Ours = s.out, true
	defer t.f.Reset()
	if isEvents(resp.Header) {
		err = each(&t.f, &untilReply{from, t}, newEventParser(t).feed)
	} else {
		err = each(&t.f, from, t.f.Add)
		t.event(nil)
		t.f.Out.Flush()
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
	f     outbox.Frame
	reply *wire.Message
}

func (t *replyTaker) data(b []byte) { t.f.Put(b) }

func (t *replyTaker) event(name []byte) {
	m := t.f.End()
	switch {
	case m == nil || len(name) > 0 && string(name) != "message":
		t.f.Reset()
	case m.Kind().IsReply():
		if bytes.Equal(m.ID(), t.id) { // the frame is ours, so its bytes are there
			t.reply = m.Clone()
		}
		t.f.Reset()
	default:
		t.f.Deliver()
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
