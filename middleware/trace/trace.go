// Package trace is the layer that determines the trace of each call, and records the call
// as a span of that trace.
//
// A client that traces puts W3C Trace Context into a request's _meta, under the keys
// traceparent, tracestate and baggage without a prefix (SEP-414):
//
//	"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
//
// The layer attaches the trace to the call, as a [middleware.Trace] under
// [middleware.TraceKey], so that log lines and audit records contain it. It is the
// outermost layer, because every other layer may log.
//
// # What the server receives
//
// Without [Options.Propagate] all three members pass unchanged. With it the call
// becomes a child span: traceparent gets a new span id and keeps its trace id and its
// flags; tracestate and baggage stay. An invalid traceparent is replaced by that of a
// new trace, and the tracestate beside it is removed, because it belongs to no trace.
// W3C Trace Context requires both.
//
// A request without a traceparent gets one, so that the server's spans have a parent,
// if nothing else in the request has to change for that: tools/call, resources/read,
// prompts/get and completion/complete, to whose params a _meta is added if necessary, and
// any other request that has a _meta. The handshake (initialize, server/discover) and ping
// get none. No member is added to the envelope, so a request without params is unchanged.
//
// Replies, notifications and the server's requests pass unchanged. So does a request that
// cannot be edited, which is logged at level debug.
//
// # Spans and metrics
//
// With a [Telemetry] each request of the client is a span of kind server, named
// "execute_tool NAME" for a tool and "METHOD" or "METHOD PROMPT" otherwise. It has the
// attributes of the MCP semantic conventions, except those that hold arguments,
// results, URIs, error texts or users. Without a Telemetry nothing is recorded, and an
// id made for Propagate appears only in the log and the audit.
//
// The layer refuses nothing. A member that it cannot read counts as absent.
package trace

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Options configure the layer of one connection. The zero value attaches the client's
// trace to calls and edits nothing.
type Options struct {
	// Propagate makes each call a child span in the request to the server.
	Propagate bool
	// DryRun reports what Propagate would change, but changes nothing.
	DryRun bool
	// Telemetry records spans and metrics; nil records nothing.
	Telemetry *Telemetry
	// Hide returns a text that a peer chose, such as the name of a tool, without secrets; nil
	// changes nothing. It is used for what Telemetry exports.
	Hide func(text string) string
	// Log receives messages about requests that could not be edited; nil discards them.
	Log *slog.Logger
	// Open holds the spans of the calls in flight across configuration reloads; nil means a
	// new one.
	Open *OpenSpans
	// Carrier returns the span of the HTTP request that carried the request with a raw id.
	// It is the parent of a call without a valid traceparent; the span of another call is
	// linked to it. Without Telemetry it is the parent of a call without a traceparent. nil if
	// requests are not carried by HTTP.
	Carrier func(id []byte) oteltrace.SpanContext
	// Replayed is for the replay of a session. It returns the recorded traceparent of the
	// request with a raw id, "" if it had none; new ids are then the same at each replay.
	// nil if the session is not a replay.
	Replayed func(id []byte) string
}

// A Conn is the layer of one connection.
type Conn struct {
	o         Options
	transport string          // of requests, as the conventions name it
	newID     func(id []byte) // replaced in tests
}

// New returns the layer of one connection.
func New(o Options) *Conn {
	c := &Conn{o: o, transport: "tcp", newID: randomID}
	c.o.Log, c.o.Open = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Open, new(OpenSpans))
	if o.Carrier == nil {
		c.o.Carrier, c.transport = func([]byte) oteltrace.SpanContext { return oteltrace.SpanContext{} }, "pipe"
	}
	if o.Replayed != nil {
		random := rand.NewChaCha8([32]byte{1})
		c.newID = func(id []byte) { fillID(id, random.Uint64) }
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
		case m.From == wire.Client && m.Kind() == wire.Request:
			c.request(ctx, m)
		case m.MethodIs("notifications/cancelled"):
			c.o.Open.cancel(m.From, m.Get("params", "requestId").Raw)
		}
		return next(ctx, m)
	}
}

// request determines the span of a request, and writes it into the request if necessary.
func (c *Conn) request(ctx context.Context, m *wire.Message) {
	call := middleware.CallFrom(ctx)
	client := readTrace(m.Meta())
	set := c.o.Propagate && (client.present || mayAddTrace(m))
	var span oteltrace.SpanContext
	if c.o.Telemetry != nil {
		span = c.startSpan(call, m, client)
	}
	if !span.IsValid() && !client.present {
		client.parent = c.o.Carrier(m.ID())
	}
	var traceparent string
	switch {
	case span.IsValid():
		traceparent = format(span)
	case set:
		traceparent = format(c.newSpan(m, client))
	case client.present && client.parent.IsValid(): // faster than to write it again
		traceparent = strings.Clone(client.text[:traceparentLen])
	default:
		traceparent = format(client.parent)
	}
	if traceparent == "" {
		return
	}
	call.SetValue(middleware.TraceKey{}, idsOf(traceparent))
	if set && !c.set(ctx, call, m, client, traceparent) && c.o.Telemetry == nil {
		call.SetValue(middleware.TraceKey{}, idsOf(format(client.parent))) // the new span was neither sent nor recorded
	}
}

// newSpan returns a new span for a request, or the recorded one in a replay.
func (c *Conn) newSpan(m *wire.Message, client clientTrace) oteltrace.SpanContext {
	if c.o.Replayed != nil {
		recorded := parse(c.o.Replayed(m.ID()))
		if recorded.IsValid() && (!client.parent.IsValid() || client.parent.TraceID() == recorded.TraceID()) {
			return recorded
		}
	}
	return newSpan(client.parent, c.newID)
}

// mayAddTrace reports whether a traceparent may be added to a request without one.
func mayAddTrace(m *wire.Message) bool {
	switch m.Method() {
	case "tools/call", "resources/read", "prompts/get", "completion/complete":
		return m.Params().IsObject() && (m.Meta().IsObject() || !m.Meta().Exists())
	case "initialize", "server/discover", "ping":
		return false
	}
	return m.Meta().IsObject()
}

// set writes a traceparent into the request, and reports whether the server will receive it.
func (c *Conn) set(ctx context.Context, call *middleware.Call, m *wire.Message, client clientTrace, traceparent string) bool {
	before, after := m.Meta().Get(parentKey).Raw, wire.Quote(traceparent)
	if !c.o.DryRun {
		err := m.Set(after, "params", "_meta", parentKey)
		if err == nil && (!client.parent.IsValid() || !client.present) {
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
