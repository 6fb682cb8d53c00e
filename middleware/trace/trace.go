// Package trace is the layer that names the trace of each call, and records the call
// as a span of it.
//
// A client that traces puts W3C Trace Context into a request's _meta, under the
// bare keys traceparent, tracestate and baggage (SEP-414):
//
//	"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
//
// The layer attaches the trace to the call, as a [middleware.Trace] under
// [middleware.TraceKey], so that log lines and audit records name it. It is the
// outermost layer, because every other layer may log.
//
// # What the server gets
//
// Without [Options.Propagate] all three members pass unchanged. With it the call
// becomes a child span: traceparent gets a new span id and keeps its trace id and its
// flags; tracestate and baggage stay. A traceparent that is not valid is replaced by
// that of a new trace, and the tracestate beside it is removed, as it belongs to no
// trace. W3C Trace Context demands both.
//
// A request without a traceparent gets one, so that the server's spans have a parent,
// if that changes nothing else about the request: tools/call, resources/read,
// prompts/get and completion/complete, whose params get a _meta if need be, and any
// other request that has a _meta. The handshake (initialize, server/discover) and ping
// get none. A member is never added to the envelope, so a request without params stays
// without.
//
// Replies, notifications and the server's own requests pass unchanged, and so does a
// request that cannot be edited; that is logged at debug.
//
// # Spans and metrics
//
// With a [Telemetry] each request of the client is a span of kind server, named
// "execute_tool NAME" for a tool and "METHOD" or "METHOD PROMPT" otherwise. It has the
// attributes of the MCP semantic conventions, except those that hold arguments,
// results, URIs, error texts or users. Without a Telemetry nothing is recorded, and an
// id made for Propagate appears in the log and the audit only.
//
// The layer refuses nothing. What it cannot read counts as absent.
package trace

import (
	"context"
	"log/slog"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

const layerName = "trace"

// The members of _meta, bare as SEP-414 has them.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
)

// Options configure the layer of all connections. The zero value names the client's
// trace and changes nothing.
type Options struct {
	// Propagate makes each call a child span in the request that goes on.
	Propagate bool
	// DryRun reports what Propagate would change and changes nothing.
	DryRun bool
	// Telemetry records spans and metrics; nil records nothing.
	Telemetry *Telemetry
	// Log reports what could not be done; nil discards it.
	Log *slog.Logger
}

// A Shared is the layer under one configuration, for all connections.
type Shared struct{ o Options }

// Compile returns the layer for all connections.
func Compile(o Options) *Shared {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Shared{o}
}

// ConnOptions configure the layer of one connection.
type ConnOptions struct {
	// Open keeps the spans of the calls in flight when rules are read again; nil for
	// none.
	Open *OpenSpans
	// Carrier returns the span of what carried the request with a raw id, such as an HTTP
	// request. It is the parent of a call whose client names none, and linked to that of
	// another call. Nil if requests are not carried by something with spans.
	Carrier func(id []byte) oteltrace.SpanContext
	// Replayed is for a session that is played again. It returns the traceparent that
	// the request with a raw id got when it was recorded, "" if there was none. Other
	// ids are the same at each replay. Nil for a session that is not a replay.
	Replayed func(id []byte) string
}

// A Conn is the layer of one connection.
type Conn struct {
	o       Options
	open    *OpenSpans
	carrier func(id []byte) oteltrace.SpanContext
	// newTrace and newSpan make ids. A test replaces them.
	newTrace func() traceparent
	newSpan  func(parent traceparent) traceparent
	replayed *replayedIDs // nil if the session is not a replay
}

// Connect returns the layer of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	c := &Conn{o: s.o, open: o.Open, carrier: o.Carrier, newTrace: newTrace, newSpan: traceparent.newSpan}
	if c.open == nil {
		c.open = new(OpenSpans)
	}
	if o.Replayed != nil {
		c.replayed = newReplayedIDs(o.Replayed)
	}
	return c
}

// Layer returns the layer.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: layerName, Wrap: c.wrap}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From != wire.Client:
		case m.Kind() == wire.Request:
			c.request(ctx, m)
		case m.MethodIs("notifications/cancelled"):
			c.open.cancel(m.Get("params", "requestId").Raw)
		}
		return next(ctx, m)
	}
}

// A clientTrace is the trace context that a request came with.
type clientTrace struct {
	parent  traceparent // "" if there is no valid one
	present bool        // there is a traceparent, valid or not
	state   wire.Value
}

// readTrace returns the trace context in a request's _meta.
func readTrace(meta wire.Value) (t clientTrace) {
	if !meta.IsObject() {
		return clientTrace{}
	}
	parent := meta.Get(parentKey)
	if t.present = parent.Exists(); !t.present {
		return t
	}
	t.parent, _ = parse(parent.View())
	t.state = meta.Get(stateKey)
	return t
}

// request finds or makes the span of a request, and sets it on the request.
func (c *Conn) request(ctx context.Context, m *wire.Message) {
	call := middleware.CallFrom(ctx)
	client := readTrace(m.Meta())
	set := c.o.Propagate && (client.present || mayBegin(m))
	var span traceparent
	if c.o.Telemetry != nil {
		span = c.o.Telemetry.start(c, call, m, client)
	}
	switch {
	case span != "":
	case set && c.replayed != nil:
		span = c.replayed.span(m, client)
	case set && client.parent != "":
		span = c.newSpan(client.parent)
	case set:
		span = c.newTrace()
	default:
		span = client.parent
	}
	if span == "" {
		return
	}
	call.SetValue(middleware.TraceKey{}, span.ids())
	if set && !c.set(ctx, call, m, client, span) && c.o.Telemetry == nil {
		call.SetValue(middleware.TraceKey{}, client.parent.ids()) // nobody knows the span that was not sent
	}
}

// mayBegin reports whether a request without a traceparent may get one.
func mayBegin(m *wire.Message) bool {
	switch m.Method() {
	case "tools/call", "resources/read", "prompts/get", "completion/complete":
		return m.Params().IsObject() && (m.Meta().IsObject() || !m.Meta().Exists())
	case "initialize", "server/discover", "ping":
		return false
	}
	return m.Meta().IsObject()
}

// set writes the span into the request, and reports whether the server will see it.
func (c *Conn) set(ctx context.Context, call *middleware.Call, m *wire.Message, client clientTrace, span traceparent) bool {
	before, after := m.Meta().Get(parentKey).Raw, wire.Quote(string(span))
	if !c.o.DryRun {
		err := m.Set(after, "params", "_meta", parentKey)
		if err == nil && client.parent == "" {
			err = m.Delete("params", "_meta", stateKey)
		}
		if err != nil {
			c.o.Log.DebugContext(ctx, "the trace could not be set on the request, which passes unchanged", "err", err)
			return false
		}
	}
	if call.Noted() {
		call.Note(middleware.Note{
			Layer: layerName, Rule: "trace.propagate", Act: middleware.Edited, Why: client.why(), DryRun: c.o.DryRun,
			Path: []string{"params", "_meta", parentKey}, Before: before, After: after, Source: "trace.propagate",
		})
	}
	return !c.o.DryRun
}

// why returns where the span in the request comes from.
func (t clientTrace) why() string {
	switch {
	case t.parent != "":
		return "a span of the client's trace"
	case t.present:
		return "a new trace, as the client's traceparent is not valid"
	}
	return "a new trace, as the client named none"
}
