package trace_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TestScripts plays testdata/*.txt. New traces have the id 1111…, new spans
// 2222…; a layer behind the one under test notes the trace of each request.
func TestScripts(t *testing.T) {
	options := map[string]trace.Options{"pass": {}, "propagate": {Propagate: true}, "dry": {Propagate: true, DryRun: true}}
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"listen": listen,
		"trace": func(_ *proxytest.Session, arg string) middleware.Layer {
			l := trace.New(options[arg])
			l.FixIDs()
			return l.Layer()
		},
		"seen": seen,
	}}.Play(t, "testdata/*.txt")
}

func seen(s *proxytest.Session, _ string) middleware.Layer {
	return middleware.Layer{Name: "seen", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if m.Kind() == wire.Request {
				got := middleware.CallFrom(ctx).Trace()
				s.Note("%s of trace %q span %q", m.Method(), got.TraceID, got.SpanID)
			}
			return next(ctx, m)
		}
	}}
}

// listen notes what the layer under test says it did.
func listen(s *proxytest.Session, _ string) middleware.Layer {
	return middleware.Layer{Name: "listen", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).Listen(false, func(n *middleware.Note) {
				s.Note("%s %s %s: %s; %v %s to %s", n.Layer, n.Rule, n.Act, n.Why, n.Path, n.Before, n.After)
			})
			return next(ctx, m)
		}
	}}
}
