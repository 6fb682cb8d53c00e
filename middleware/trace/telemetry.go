package trace

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// Scope is the instrumentation scope of attache's spans and metrics.
const Scope = "github.com/attache-mcp/attache"

// SchemaURL is the version of the conventions that the names here follow: the
// GenAI and MCP semantic conventions, which have a repository of their own.
//
// https://github.com/open-telemetry/semantic-conventions-genai
const SchemaURL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"

// Attributes of the conventions, and behind them attache's own.
const (
	methodKey      = attribute.Key("mcp.method.name")
	protocolKey    = attribute.Key("mcp.protocol.version")
	sessionKey     = attribute.Key("mcp.session.id")
	requestIDKey   = attribute.Key("jsonrpc.request.id")
	operationKey   = attribute.Key("gen_ai.operation.name")
	toolKey        = attribute.Key("gen_ai.tool.name")
	promptKey      = attribute.Key("gen_ai.prompt.name")
	errorTypeKey   = attribute.Key("error.type")
	statusCodeKey  = attribute.Key("rpc.response.status_code")
	transportKey   = attribute.Key("network.transport")
	serverKey      = attribute.Key("attache.server")
	decisionKey    = attribute.Key("attache.decision")
	rulesKey       = attribute.Key("attache.rules")
	editsKey       = attribute.Key("attache.edits")
	layerKey       = attribute.Key("attache.layer")
	dryRunKey      = attribute.Key("attache.dry_run")
	ruleKey        = attribute.Key("attache.rule")
	executeTool    = "execute_tool"
	toolError      = "tool_error" // what the conventions call a result with isError
	errCancelled   = "cancelled"
	errNoReply     = "no_reply" // the session ended first
	maxAttribute   = 256        // bytes of a name or id that a peer chose
	maxRulesOfCall = 32         // rules that a span names
)

// durationBounds are the buckets the MCP conventions ask for, in seconds.
func durationBounds() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

// TelemetryOptions say where spans and metrics go.
type TelemetryOptions struct {
	// Tracer makes the spans; nil for no spans.
	Tracer oteltrace.Tracer
	// Meter makes the instruments; nil for no metrics.
	Meter metric.Meter
	// Server is what the wrapped server is called; "" leaves it out.
	Server string
}

// Telemetry makes spans and metrics of calls. It may be shared by the layers of
// several connections.
type Telemetry struct {
	tracer oteltrace.Tracer
	server []attribute.KeyValue

	duration        metric.Float64Histogram
	calls           metric.Int64Counter
	refusals, edits metric.Int64Counter
	inFlight        metric.Int64UpDownCounter

	mu   sync.Mutex
	open map[string][]*span // by raw request id, oldest first
}

// NewTelemetry makes the instruments. An error is the meter's.
func NewTelemetry(o TelemetryOptions) (*Telemetry, error) {
	t := &Telemetry{tracer: o.Tracer, open: map[string][]*span{}}
	if o.Server != "" {
		t.server = []attribute.KeyValue{serverKey.String(o.Server)}
	}
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	var errs [5]error
	t.duration, errs[0] = o.Meter.Float64Histogram("mcp.server.operation.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(durationBounds()...),
		metric.WithDescription("MCP request or notification duration as observed on the receiver from the time it was received until the result or ack is sent."))
	t.calls, errs[1] = o.Meter.Int64Counter("attache.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Requests of the client's that are over."))
	t.refusals, errs[2] = o.Meter.Int64Counter("attache.refusals", metric.WithUnit("{refusal}"),
		metric.WithDescription("Decisions of a layer against a call."))
	t.edits, errs[3] = o.Meter.Int64Counter("attache.edits", metric.WithUnit("{edit}"),
		metric.WithDescription("Members of calls and replies that a layer has set, changed or removed."))
	t.inFlight, errs[4] = o.Meter.Int64UpDownCounter("attache.calls.in_flight", metric.WithUnit("{call}"),
		metric.WithDescription("Requests of the client's that wait for their reply."))
	return t, errors.Join(errs[:]...)
}

// A span is the record of one call.
type span struct {
	t     *Telemetry
	ctx   context.Context // has the span in it, for exemplars
	otel  oteltrace.Span
	id    string
	begun time.Time
	what  []attribute.KeyValue // the method and its target

	mu    sync.Mutex // notes are made from both directions
	over  bool
	rules []string
	edits int
	acted decision
}

// A decision is what became of a call: the gravest of its notes.
type decision uint8

const (
	passed decision = iota
	edited
	refused
)

func (d decision) String() string { return [...]string{"passed", "edited", "refused"}[d] }

// start begins the record of a request and returns the traceparent of its span,
// "" without a tracer. If the sampler says so, nobody records that span.
func (t *Telemetry) start(call *middleware.Call, m *wire.Message, g given) traceparent {
	name, what := target(m)
	s := &span{t: t, id: string(m.ID()), begun: time.Now(), what: append(what, t.server...)}
	s.ctx = remote(g)
	s.otel = oteltrace.SpanFromContext(context.Background()) // does nothing
	if t.tracer != nil {
		attributes := append(s.what[:len(s.what):len(s.what)], transportKey.String("pipe"), requestIDKey.String(clip(idText(m.ID()))))
		s.ctx, s.otel = t.tracer.Start(s.ctx, name, oteltrace.WithSpanKind(oteltrace.SpanKindServer),
			oteltrace.WithTimestamp(s.begun), oteltrace.WithAttributes(attributes...))
	}
	t.mu.Lock()
	t.open[s.id] = append(t.open[s.id], s)
	t.mu.Unlock()
	t.inFlight.Add(s.ctx, 1, metric.WithAttributes(t.server...))
	call.Listen(false, s.note)
	call.OnReply(s.reply)
	c := s.otel.SpanContext()
	if !c.IsValid() {
		return ""
	}
	return compose(c.TraceID().String(), c.SpanID().String(), byte(c.TraceFlags()))
}

// target returns the name of a request's span and the attributes that say what it
// asks for.
func target(m *wire.Message) (name string, what []attribute.KeyValue) {
	method := clip(m.Method())
	what = append(make([]attribute.KeyValue, 0, 10), methodKey.String(method))
	switch method {
	case "tools/call":
		tool := clip(m.Name().Text())
		return executeTool + " " + tool, append(what, operationKey.String(executeTool), toolKey.String(tool))
	case "prompts/get":
		prompt := clip(m.Name().Text())
		return method + " " + prompt, append(what, promptKey.String(prompt))
	}
	return method, what
}

// remote returns a context with the client's span as the parent to be.
func remote(g given) context.Context {
	ctx := context.Background()
	if g.parent == "" {
		return ctx
	}
	var c oteltrace.SpanContextConfig
	c.TraceID, _ = oteltrace.TraceIDFromHex(g.parent.traceID()) // checked by parse
	c.SpanID, _ = oteltrace.SpanIDFromHex(g.parent.spanID())
	c.TraceFlags = oteltrace.TraceFlags(g.parent.flags())
	c.TraceState, _ = oteltrace.ParseTraceState(g.state.Text()) // a bad one counts as none
	return oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(c))
}

// note hears what layers do with the call.
func (s *span) note(n *middleware.Note) {
	if n.Layer == layerName {
		return // each call would be an edited one
	}
	var to metric.Int64Counter
	var act decision
	switch n.Act {
	case middleware.Refused:
		to, act = s.t.refusals, refused
	case middleware.Edited:
		to, act = s.t.edits, edited
	default:
		return
	}
	by := append(s.what[:len(s.what):len(s.what)], layerKey.String(n.Layer))
	if n.Rule != "" {
		by = append(by, ruleKey.String(n.Rule))
	}
	if n.DryRun {
		by = append(by, dryRunKey.Bool(true))
		act = passed // what was decided was not done
	}
	to.Add(s.ctx, 1, metric.WithAttributes(by...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acted = max(s.acted, act)
	if act == edited {
		s.edits++
	}
	if n.Rule != "" && len(s.rules) < maxRulesOfCall && !slices.Contains(s.rules, n.Rule) {
		s.rules = append(s.rules, n.Rule)
	}
}

// reply is the hook that ends the span. It is registered first and so runs last,
// with the reply as the client will have it.
func (s *span) reply(ctx context.Context, reply *wire.Message) error {
	var more []attribute.KeyValue
	failed, fault := outcome(reply)
	if code := reply.ErrorObject().Get("code"); code.Exists() {
		more = append(more, statusCodeKey.String(clip(string(code.Raw))))
	}
	if view, ok := middleware.CallFrom(ctx).Value(sessionstate.ContextKey{}).(*sessionstate.Context); ok && view != nil {
		if view.Protocol != "" {
			more = append(more, protocolKey.String(clip(view.Protocol)))
		}
		s.otel.SetAttributes(sessionKey.String(clip(view.Session.Value)))
	}
	s.t.forget(s)
	s.end(failed, fault, more)
	return nil
}

// outcome returns the error.type of a reply, "" if it is none, and whether it is
// to be counted against the server: what the caller did wrong is not (conventions
// of mcp.server spans, "rpc.response.status_code").
func outcome(reply *wire.Message) (errorType string, fault bool) {
	switch {
	case reply.Kind() == wire.Error:
		code := reply.ErrorObject().Get("code").Raw
		if len(code) == 0 {
			return "_OTHER", true
		}
		server := bytes.Equal(code, []byte("-32603")) || len(code) == 6 && bytes.HasPrefix(code, []byte("-320"))
		return clip(string(code)), server
	case string(reply.Result().Get("isError").Raw) == "true":
		return toolError, true
	}
	return "", false
}

// cancelled ends the span of the oldest call with that raw id, of which no reply
// may ever come.
func (t *Telemetry) cancelled(id []byte) {
	t.mu.Lock()
	var s *span
	if all := t.open[string(id)]; len(all) > 0 {
		s = all[0]
	}
	t.mu.Unlock()
	if s != nil {
		t.forget(s)
		s.end(errCancelled, false, nil)
	}
}

// Close ends the spans of calls that were never answered. Nothing may be started
// after it.
func (t *Telemetry) Close() {
	t.mu.Lock()
	open := t.open
	t.open = map[string][]*span{}
	t.mu.Unlock()
	for _, all := range open {
		for _, s := range all {
			s.end(errNoReply, true, nil)
		}
	}
}

// forget takes a span out of the table.
func (t *Telemetry) forget(s *span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.open[s.id]
	for i := range all {
		if all[i] == s {
			all = append(all[:i], all[i+1:]...)
			break
		}
	}
	if len(all) == 0 {
		delete(t.open, s.id)
		return
	}
	t.open[s.id] = all
}

// end ends the span once, and counts the call.
func (s *span) end(errorType string, fault bool, more []attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if errorType != "" {
		more = append(more, errorTypeKey.String(errorType))
	}
	now := time.Now()
	by := append(s.what[:len(s.what):len(s.what)], append(more, transportKey.String("pipe"))...)
	s.t.duration.Record(s.ctx, now.Sub(s.begun).Seconds(), metric.WithAttributes(by...))
	s.t.calls.Add(s.ctx, 1, metric.WithAttributes(append(s.what[:len(s.what):len(s.what)], decisionKey.String(s.acted.String()))...))
	s.t.inFlight.Add(s.ctx, -1, metric.WithAttributes(s.t.server...))
	if fault {
		s.otel.SetStatus(codes.Error, "")
	}
	more = append(more, decisionKey.String(s.acted.String()))
	if s.edits > 0 {
		more = append(more, editsKey.Int(s.edits))
	}
	if len(s.rules) > 0 {
		more = append(more, rulesKey.StringSlice(s.rules))
	}
	s.otel.SetAttributes(more...)
	s.otel.End(oteltrace.WithTimestamp(now))
}

// idText returns a request's id as the conventions write it: without quotes.
func idText(raw []byte) string {
	if v := (wire.Value{Raw: raw}); v.IsString() {
		return v.Text()
	}
	return string(raw)
}

// clip shortens what a peer chose, and leaves it valid UTF-8, which OTLP demands.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxAttribute)], "")
}
