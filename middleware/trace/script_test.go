package trace_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// TestScripts plays testdata/*.txt. New traces have the id 1111…, new spans 2222…. A layer
// behind the one under test adds a note with the trace of each request.
func TestScripts(t *testing.T) {
	options := map[string]trace.Options{"pass": {}, "propagate": {Propagate: true}, "dry": {Propagate: true, DryRun: true},
		"http": {Carrier: carrier}, "http-propagate": {Propagate: true, Carrier: carrier}}
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"listen": listen,
		"trace": func(_ *proxytest.Session, arg string) middleware.Layer {
			l := trace.New(options[arg])
			l.FixIDs()
			return l.Layer()
		},
		"seen":  seen,
		"spans": func(s *proxytest.Session, arg string) middleware.Layer { return spans(t, s, arg) },
		"rules": rules,
	}}.Play(t, "testdata/*.txt")
}

// carrier returns the span in the headers of an HTTP request.
func carrier([]byte) oteltrace.SpanContext {
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: oteltrace.TraceID{15: 3}, SpanID: oteltrace.SpanID{7: 4}, TraceFlags: 1, Remote: true})
}

// seen adds a note with the trace of each request.
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

// listen adds a note to the script for each note of the layer under test.
func listen(s *proxytest.Session, _ string) middleware.Layer {
	return middleware.Layer{Name: "listen", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).Listen(false, func(_ *middleware.Call, n middleware.Note) {
				s.Note("%s %s %s: %s; %v %s to %s", n.Layer, n.Rule, n.Act, n.Why, n.Path, n.Before, n.After)
			})
			return next(ctx, m)
		}
	}}
}

// spans returns the layer under test with a tracer, which adds a note for each span that
// ends. Its ids are numbers. "spans=propagate" writes them into requests.
func spans(t *testing.T, s *proxytest.Session, arg string) middleware.Layer {
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(noter{s: s}), sdktrace.WithIDGenerator(&numbers{}))
	telemetry, err := trace.NewTelemetry(trace.TelemetryOptions{Tracer: p.Tracer(trace.Scope)})
	testkit.Check(t, err)
	return trace.New(trace.Options{Telemetry: telemetry, Propagate: arg == "propagate", DryRun: arg == "dry"}).Layer()
}

// A noter adds a note for each span that ends.
type noter struct {
	sdktrace.SpanProcessor // nil: the other methods are not called
	s                      *proxytest.Session
}

func (noter) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (n noter) OnEnd(s sdktrace.ReadOnlySpan) {
	if n.s == nil {
		return
	}
	var all []string
	for _, kv := range s.Attributes() {
		if kv.Key != "network.transport" && kv.Key != "mcp.method.name" {
			all = append(all, string(kv.Key)+"="+kv.Value.String())
		}
	}
	slices.Sort(all)
	n.s.Note("span %q %s parent %s: %s", s.Name(), s.Status().Code, s.Parent().SpanID(), strings.Join(all, " "))
}

// numbers generates ids that are numbers.
type numbers struct{ n byte }

func (g *numbers) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	return oteltrace.TraceID{15: 1}, g.NewSpanID(ctx, oteltrace.TraceID{})
}

func (g *numbers) NewSpanID(context.Context, oteltrace.TraceID) oteltrace.SpanID {
	g.n++
	return oteltrace.SpanID{7: g.n}
}

// rules stands for the inner layers: it sets the context, and edits, refuses or rehearses the
// calls of tools with that name.
func rules(*proxytest.Session, string) middleware.Layer {
	view := &sessionstate.Context{Session: sessionstate.Fact{Value: "s1"}, Protocol: "2026-07-28",
		Principal: &sessionstate.Principal{User: "alice", Tenant: "acme", Email: "alice@example.com"}}
	return middleware.Layer{Name: "rules", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			call := middleware.CallFrom(ctx)
			call.SetValue(sessionstate.ContextKey{}, view)
			n := middleware.Note{Layer: "rules", Rule: "rules[1]", Act: middleware.Edited}
			switch m.Name().Text() {
			case "edit":
				call.Note(n)
				call.OnReply(func(context.Context, *wire.Message) error { call.Note(n); return nil })
			case "keep":
				n.Act = middleware.Kept
				call.Note(n)
			case "rehearse":
				n.Act, n.DryRun = middleware.Refused, true
				call.Note(n)
			case "refuse":
				n.Act = middleware.Refused
				call.Note(n)
				return call.Answer(ctx, wire.ToolErrorReply(m.ID(), "no", false))
			}
			return next(ctx, m)
		}
	}}
}
