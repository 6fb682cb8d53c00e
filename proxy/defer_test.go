package proxy_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// If a layer answers a call both at once and with Defer, only the first answer counts. The deferred
// one must not answer a later request that reuses the Call.
func TestDeferAndAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := make(chan struct{})
		both := layer("both", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
			if !m.MethodIs("both") {
				return next(ctx, m)
			}
			call.Defer(m, func(context.Context, *wire.Message) *wire.Message {
				<-work
				return wire.ErrorReply([]byte("2"), wire.CodeInternalError, "later")
			})
			return call.Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInternalError, "at once"))
		})
		s := proxytest.Setup{Options: proxy.Options{Layers: []middleware.Layer{both}}}.Start(t)
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"both"}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"at once","data":{"source":"attache"}}}`)
		s.Client.Send(`{"jsonrpc":"2.0","id":2,"method":"x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","id":2,"method":"x"}`)
		close(work)
		synctest.Wait()
		s.Server.Send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	})
}

// Work that returns nil because the client has cancelled the call is not logged as a layer that does
// not answer: nothing was due.
func TestCancelledWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := layer("later", func(_ context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
			if !m.MethodIs("later") {
				return next(context.Background(), m)
			}
			call.Defer(m, func(ctx context.Context, _ *wire.Message) *wire.Message {
				<-ctx.Done()
				return nil
			})
			return nil
		})
		var log bytes.Buffer
		o := proxy.Options{Layers: []middleware.Layer{later}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		s := proxytest.Setup{Options: o}.Start(t)
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"later"}`)
		s.Client.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		if log.Len() > 0 {
			t.Error(log.String())
		}
	})
}
