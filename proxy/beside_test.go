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

// A besideRecorder is a client that records the Beside of each reply by the id of the reply.
type besideRecorder struct {
	io.Writer
	got  map[string]any
	done chan struct{} // closed after want replies
	want int
}

// Take implements wire.MessageTaker.
func (b *besideRecorder) Take(m *wire.Message) bool {
	if b.got[string(m.ID())] = m.Beside; len(b.got) == b.want {
		close(b.done)
	}
	return true
}

// An errorServer sends the messages of replies, which answer the calls with errors.
type errorServer struct {
	*recordedServer
	calls   chan string // their ids
	replies func(to wire.Sink)
}

func (u errorServer) Stdin() io.WriteCloser { return u }

// Take implements wire.MessageTaker.
func (u errorServer) Take(m *wire.Message) bool {
	u.calls <- string(m.ID())
	return true
}

// Push implements wire.Pusher.
func (u errorServer) Push(to wire.Sink) {
	go func() {
		u.replies(to)
		<-u.closed
		to.End()
		close(u.ended)
	}()
}

// The Beside of a server's reply reaches the client, also if a layer edits the reply or suspends
// it. A message that replaces the reply has no Beside.
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
			*m = *wire.ErrorReply(bytes.Clone(m.ID()), wire.CodeInternalError, "replaced")
			return nil
		},
		"5": func(context.Context, *wire.Message) error { panic("a layer fails") },
	}
	want := map[string]any{"0": "0", "1": "1", "2": "2", "3": "3", "4": nil, "5": nil}
	hooked := layer("hooks", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if hook := hooks[string(m.ID())]; hook != nil {
			call.OnReply(hook)
		}
		return next(ctx, m)
	})
	client := &besideRecorder{Writer: io.Discard, got: map[string]any{}, done: make(chan struct{}), want: len(want)}
	server := errorServer{recordedServer: newRecordedServer(nil), calls: make(chan string, len(want))}
	server.replies = func(to wire.Sink) {
		for range want {
			id := <-server.calls
			var m wire.Message
			m.Reset(wire.Server, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no"}}`+"\n", id))
			m.Beside = id
			if err := to.Line(&m, false); err != nil {
				t.Error(err)
			}
		}
	}
	err := proxy.Run(t.Context(), proxy.Options{
		Layers: []middleware.Layer{hooked}, ClientOut: client,
		Start: func(context.Context) (proxy.Upstream, error) { return server, nil },
		ClientLines: pushFunc(func(to wire.Sink) {
			for id := range want {
				var m wire.Message
				m.Reset(wire.Client, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x"}}`+"\n", id))
				deliver(t, to, &m)
			}
			<-client.done
		}),
	})
	if err != nil || !maps.Equal(client.got, want) {
		t.Errorf("%v: the replies have Beside %v, want %v", err, client.got, want)
	}
}
