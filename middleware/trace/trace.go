// Package trace is the layer that says which trace a call belongs to, and makes
// the call a span of it.
//
// A client that traces puts W3C Trace Context into a request's _meta, under the
// bare keys traceparent, tracestate and baggage (SEP-414):
//
//	"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
//
// The layer attaches the trace to the call, as a [middleware.Trace] under
// [middleware.TraceKey], so that log lines and audit records name it. It stands
// outermost, and so before all that could have something to say about the call.
//
// # What goes on
//
// Without [Options.Propagate] all three members go on as they came. With it the
// call becomes a child span: traceparent is given a new span id and keeps its
// trace id and its flags; tracestate and baggage stay. A traceparent that is not
// valid is replaced by that of a new trace, and a tracestate beside it, which
// then belongs to no trace, is removed: both as W3C Trace Context demands.
//
// A request without a traceparent is given one, so that the server's spans have a
// parent, if that changes nothing else about it: a request that does work for the
// model (tools/call, resources/read, prompts/get, completion/complete), in whose
// params a _meta is made if need be, or any other that has a _meta. The handshake
// (initialize, server/discover) and ping are given none. A member is never added
// to the envelope, so a request without params stays without.
//
// Replies, notifications and the server's own requests pass untouched, as does a
// request that cannot be edited; that is logged at debug.
//
// # Spans and metrics
//
// With a [Telemetry] each request of the client's is a span of kind server, named
// "execute_tool NAME" for a tool and "METHOD" or "METHOD PROMPT" otherwise, with
// the attributes of the MCP semantic conventions and none that hold arguments,
// results, URIs, error texts or users. Without one nothing is recorded, and an id
// made for Propagate is known to log and audit alone.
//
// The layer refuses nothing, and what it cannot read counts as absent.
package trace

import (
	"context"
	"log/slog"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

const layerName = "trace"

// The members of _meta, bare as SEP-414 has them.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
)

// Options configure the layer. The zero value names the client's trace and
// changes nothing.
type Options struct {
	// Propagate makes each call a child span in the request that goes on.
	Propagate bool
	// DryRun says what Propagate would change and changes nothing.
	DryRun bool
	// Telemetry takes spans and metrics; nil for none.
	Telemetry *Telemetry
	// Replayed, if not nil, says of a session that is played again which traceparent
	// the request with a raw id was given then, "" for none. Where it cannot be given
	// again, ids are the same each time.
	Replayed func(id []byte) string
	// Log takes what could not be done; nil discards it.
	Log *slog.Logger
}

// A Trace is the layer.
type Trace struct {
	o Options
	// Ids are made here, so that a test can know them.
	begin func() traceparent
	child func(traceparent) traceparent

	replayed *replayed // nil in a session that is not played again
}

// New returns the layer for one connection.
func New(o Options) *Trace {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Trace{o: o, begin: begin, child: traceparent.child}
	if o.Replayed != nil {
		t.replayed = newReplayed(o.Replayed)
	}
	return t
}

// Layer returns the layer.
func (t *Trace) Layer() middleware.Layer {
	return middleware.Layer{Name: layerName, Wrap: t.wrap}
}

func (t *Trace) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client {
			t.see(ctx, m)
		}
		return next(ctx, m)
	}
}

// see takes a frame of the client's.
func (t *Trace) see(ctx context.Context, m *wire.Message) {
	switch {
	case m.Kind() == wire.Request:
		t.request(ctx, m)
	case t.o.Telemetry != nil && m.MethodIs("notifications/cancelled"):
		t.o.Telemetry.cancelled(m.Get("params", "requestId").Raw)
	}
}

// A given is what a request came with.
type given struct {
	parent  traceparent // "" if there is none that is valid
	present bool        // there is one, valid or not
	state   wire.Value
}

func read(meta wire.Value) (g given) {
	if !meta.IsObject() {
		return given{}
	}
	parent := meta.Get(parentKey)
	if g.present = parent.Exists(); !g.present {
		return g
	}
	g.parent, _ = parse(parent.View())
	g.state = meta.Get(stateKey)
	return g
}

// request finds or makes the span of a request, and sets it on what goes on.
func (t *Trace) request(ctx context.Context, m *wire.Message) {
	call := middleware.CallFrom(ctx)
	g := read(m.Meta())
	set := t.o.Propagate && (g.present || begins(m))
	var own traceparent
	if t.o.Telemetry != nil {
		own = t.o.Telemetry.start(call, m, g)
	}
	switch {
	case own != "":
	case set && t.replayed != nil:
		own = t.replayed.own(m, g)
	case set && g.parent != "":
		own = t.child(g.parent)
	case set:
		own = t.begin()
	default:
		own = g.parent
	}
	if own == "" {
		return
	}
	call.SetValue(middleware.TraceKey{}, own.ids())
	if set && !t.set(ctx, call, m, g, own) && t.o.Telemetry == nil {
		call.SetValue(middleware.TraceKey{}, g.parent.ids()) // of the span that was not made nobody knows
	}
}

// begins reports whether a request without a traceparent may be given one.
func begins(m *wire.Message) bool {
	switch m.Method() {
	case "tools/call", "resources/read", "prompts/get", "completion/complete":
		return m.Params().IsObject() && (m.Meta().IsObject() || !m.Meta().Exists())
	case "initialize", "server/discover", "ping":
		return false
	}
	return m.Meta().IsObject()
}

// set writes own into the request, and reports whether the server will see it.
func (t *Trace) set(ctx context.Context, call *middleware.Call, m *wire.Message, g given, own traceparent) bool {
	before, after := m.Meta().Get(parentKey).Raw, wire.Quote(string(own))
	if !t.o.DryRun {
		err := m.Set(after, "params", "_meta", parentKey)
		if err == nil && g.parent == "" {
			err = m.Delete("params", "_meta", stateKey)
		}
		if err != nil {
			t.o.Log.DebugContext(ctx, "the trace could not be set on the request, which passes as it came", "err", err)
			return false
		}
	}
	if call.Noted() {
		call.Note(middleware.Note{
			Layer: layerName, Rule: "trace.propagate", Act: middleware.Edited, Why: g.why(), DryRun: t.o.DryRun,
			Path: []string{"params", "_meta", parentKey}, Before: before, After: after, Source: "trace.propagate",
		})
	}
	return !t.o.DryRun
}

// why says where the span that goes on comes from.
func (g given) why() string {
	switch {
	case g.parent != "":
		return "a span of the client's trace"
	case g.present:
		return "a new trace, as the client's traceparent is not valid"
	}
	return "a new trace, as the client named none"
}
