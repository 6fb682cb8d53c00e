package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
)

// besides are what stood beside the replies that a client was sent, by their ids.
type besides struct {
	io.Writer
	of   map[string]any
	left chan struct{} // closed when all have been sent
	most int
}

// Take implements wire.MessageTaker.
func (b *besides) Take(m *wire.Message) bool {
	if b.of[string(m.ID())] = m.Beside; len(b.of) == b.most {
		close(b.left)
	}
	return true
}

// A refuser is a server that hands over its replies when all calls have come.
type refuser struct {
	*tape
	came    chan string
	replies func(to wire.Sink)
}

func (u refuser) Stdin() io.WriteCloser { return u }

// Take implements wire.MessageTaker.
func (u refuser) Take(m *wire.Message) bool {
	u.came <- string(m.ID())
	return true
}

// Push implements wire.Pusher.
func (u refuser) Push(to wire.Sink) {
	go func() {
		u.replies(to)
		<-u.closed
		to.End()
		close(u.over)
	}()
}

// The Beside of a server's reply reaches the client, also if a layer edits the reply or holds it
// back. A message that replaces the reply does not have it.
func TestBesideReplies(t *testing.T) {
	ready := make(chan struct{})
	close(ready)
	edit := func(m *wire.Message) error { return m.Set([]byte(`"edited"`), "error", "message") }
	hooks := map[string]middleware.ReplyHook{
		"1": func(context.Context, *wire.Message) error { return nil },
		"2": func(_ context.Context, m *wire.Message) error { return edit(m) },
		"3": func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).Suspend(m, ready, time.Minute, func(_ context.Context, m *wire.Message) error { return edit(m) })
			return edit(m)
		},
		"4": func(_ context.Context, m *wire.Message) error {
			*m = *wire.ErrorReply(bytes.Clone(m.ID()), wire.CodeInternalError, "another")
			return nil
		},
		"5": func(context.Context, *wire.Message) error { panic("a layer fails") },
	}
	want := map[string]any{"0": "0", "1": "1", "2": "2", "3": "3", "4": nil, "5": nil}
	layer := middleware.Layer{Name: "hooks", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if hook := hooks[string(m.ID())]; hook != nil {
				middleware.CallFrom(ctx).OnReply(hook)
			}
			return next(ctx, m)
		}
	}}
	client := &besides{Writer: io.Discard, of: map[string]any{}, left: make(chan struct{}), most: len(want)}
	server := refuser{tape: newTape(nil), came: make(chan string, len(want))}
	server.replies = func(to wire.Sink) {
		for range want {
			id := <-server.came
			var m wire.Message
			m.Reset(wire.Server, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no"}}`+"\n", id))
			m.Beside = id
			if err := to.Line(&m, false); err != nil {
				t.Error(err)
			}
		}
	}
	err := proxy.Run(t.Context(), proxy.Options{
		Layers: []middleware.Layer{layer}, ClientOut: client,
		Start: func(context.Context) (proxy.Upstream, error) { return server, nil },
		ClientLines: pushFunc(func(to wire.Sink) {
			for id := range want {
				var m wire.Message
				m.Reset(wire.Client, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x"}}`+"\n", id))
				hand(t, to, &m)
			}
			<-client.left
		}),
	})
	if err != nil || !maps.Equal(client.of, want) {
		t.Errorf("%v: beside the replies stood %v", err, client.of)
	}
}
