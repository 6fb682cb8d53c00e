package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/attache-mcp/attache/proxy/remote/internal/eventstream"
	"github.com/attache-mcp/attache/proxy/remote/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// ask sends a request that attache made, and returns the reply. Messages that come before the reply go
// to the client.
func (s *Server) ask(ctx context.Context, m *wire.Message, h http.Header) (*wire.Message, error) {
	h["Accept"], h["Content-Type"] = acceptsBoth, isJSON
	resp, err := s.send(ctx, http.MethodPost, h, &body{line: m.Frame()})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		r := readRefusal(resp)
		return nil, fmt.Errorf("the server answered %s: %s", statusText(r.status), r.shown(string(r.text)))
	}
	from, err := decoded(resp)
	if err != nil {
		return nil, err
	}
	t := &replyReader{id: m.ID()}
	// Ours has a reply of any size held or dropped: the client must not see the beginning of a reply to a
	// request that it has not made.
	t.f.Out, t.f.Ours = s.out, true
	defer t.f.Reset()
	if isEvents(resp.Header) {
		p := eventstream.New(t)
		err = each(&t.f, from, func(b []byte) {
			if p.Feed(b); t.reply != nil {
				resp.Body.Close() // the server may leave the stream open; the next read fails
			}
		})
	} else {
		err = each(&t.f, from, t.f.Add)
		t.Event(nil)
		t.f.Out.Flush()
	}
	switch {
	// If there is a reply, an error of the read does not count: it may come from closing the body above.
	case t.reply != nil:
		return t.reply, nil
	case err == nil:
		err = errors.New("its answer has no reply")
	}
	return nil, err
}

// A replyReader keeps the reply to a request that attache made, and passes on all other messages.
type replyReader struct {
	id    []byte
	f     outbox.Frame
	reply *wire.Message
}

func (t *replyReader) Data(b []byte) { t.f.Put(b) }

func (t *replyReader) Event(name []byte) {
	m := t.f.End()
	switch {
	case m == nil || len(name) > 0 && string(name) != "message":
		t.f.Reset()
	case m.Kind().IsReply(): // another reply than ours answers nobody: no client waits at this answer
		if bytes.Equal(m.ID(), t.id) { // Frame.Ours has kept its bytes
			t.reply = m.Clone()
		}
		t.f.Reset()
	default:
		t.f.Deliver()
	}
}
