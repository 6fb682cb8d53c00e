package trace

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

type span struct {
	t         *Telemetry
	open      *OpenSpans      // contains the span until the call has a reply
	ctx       context.Context // contains the span, for exemplars
	otel      oteltrace.Span
	id        string
	start     time.Time
	target    []attribute.KeyValue // the method and the name of the tool or prompt
	transport attribute.KeyValue
	shown     func(text string) string // Conn.shown

	mu       sync.Mutex // both directions add notes
	ended    bool
	rules    []string
	edits    int
	decision decision
}

// A decision is what the layers did to a call: the most severe of its notes.
type decision uint8

const (
	passed decision = iota
	edited
	refused
)

func (d decision) String() string { return [...]string{"passed", "edited", "refused"}[d] }

// target returns the name of a request's span and the attributes of its target.
func (c *Conn) target(m *wire.Message) (name string, attributes []attribute.KeyValue) {
	method := c.shown(m.Method())
	attributes = append(make([]attribute.KeyValue, 0, 10), methodKey.String(method))
	switch method {
	case "tools/call":
		tool := c.shown(m.Name().Text())
		return executeTool + " " + tool, append(attributes, operationKey.String(executeTool), toolKey.String(tool))
	case "prompts/get":
		prompt := c.shown(m.Name().Text())
		return method + " " + prompt, append(attributes, promptKey.String(prompt))
	}
	return method, attributes
}

// note counts the edits and refusals of layers.
func (s *span) note(_ *middleware.Call, n middleware.Note) {
	if n.Layer == layerName {
		return // otherwise each call would count as edited
	}
	var counter metric.Int64Counter
	var d decision
	switch n.Act {
	case middleware.Refused:
		counter, d = s.t.refusals, refused
	case middleware.Edited:
		counter, d = s.t.edits, edited
	default:
		return
	}
	by := append(s.target[:len(s.target):len(s.target)], layerKey.String(n.Layer))
	if n.Rule != "" {
		by = append(by, ruleKey.String(n.Rule))
	}
	if n.DryRun {
		by = append(by, dryRunKey.Bool(true))
		d = passed // a dry run changes nothing
	}
	counter.Add(s.ctx, 1, metric.WithAttributes(by...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decision = max(s.decision, d)
	if d == edited {
		s.edits++
	}
	if n.Rule != "" && len(s.rules) < maxRulesOfCall && !slices.Contains(s.rules, n.Rule) {
		s.rules = append(s.rules, n.Rule)
	}
}

// reply is the hook that ends the span. It is registered first and so runs last, with the
// reply as the client receives it.
func (s *span) reply(ctx context.Context, reply *wire.Message) error {
	var more []attribute.KeyValue
	failed, fault := outcome(reply)
	if code := reply.ErrorObject().Get("code"); code.Exists() {
		more = append(more, statusCodeKey.String(clip(string(code.Raw))))
	}
	protocol := ""
	if view := sessionstate.ContextOf(middleware.CallFrom(ctx)); view != nil {
		protocol = view.Protocol
		s.otel.SetAttributes(sessionKey.String(s.shown(view.Session.Value)))
	}
	if s.target[0] == methodKey.String("initialize") {
		protocol = reply.Result().Get("protocolVersion").Text() // not known at the request
	}
	if protocol != "" {
		more = append(more, protocolKey.String(clip(protocol)))
	}
	s.open.remove(s)
	s.end(failed, fault, more)
	return nil
}

// outcome returns the error.type of a reply, "" if it is not an error, and whether the error
// is a fault of the server and not of the caller (conventions of mcp.server spans,
// "rpc.response.status_code").
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

// end ends the span once, and counts the call.
func (s *span) end(errorType string, fault bool, more []attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if errorType != "" {
		more = append(more, errorTypeKey.String(errorType))
	}
	now := time.Now()
	by := append(s.target[:len(s.target):len(s.target)], append(more, s.transport)...)
	s.t.duration.Record(s.ctx, now.Sub(s.start).Seconds(), metric.WithAttributes(by...))
	s.t.calls.Add(s.ctx, 1, metric.WithAttributes(append(s.target[:len(s.target):len(s.target)], decisionKey.String(s.decision.String()))...))
	s.t.inFlight.Add(s.ctx, -1, metric.WithAttributes(s.t.server...))
	if fault {
		s.otel.SetStatus(codes.Error, "")
	}
	more = append(more, decisionKey.String(s.decision.String()))
	if s.edits > 0 {
		more = append(more, editsKey.Int(s.edits))
	}
	if len(s.rules) > 0 {
		more = append(more, rulesKey.StringSlice(s.rules))
	}
	s.otel.SetAttributes(more...)
	s.otel.End(oteltrace.WithTimestamp(now))
}

// idText returns a request's id without quotes, as the conventions write it.
func idText(raw []byte) string {
	if v := (wire.Value{Raw: raw}); v.IsString() {
		return v.Text()
	}
	return string(raw)
}

// clip shortens a text from a peer. The result is valid UTF-8, as OTLP requires.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxAttribute)], "")
}

// shown returns a text from a peer, shortened and without secrets. A client may use an API key as an id or a
// name.
func (c *Conn) shown(s string) string {
	if c.o.Hide != nil {
		s = c.o.Hide(s[:min(len(s), maxHidden)])
	}
	return clip(s)
}

// startSpan starts the span of a request. It returns an invalid one without a tracer. The sampler
// decides whether the span is recorded.
func (c *Conn) startSpan(call *middleware.Call, m *wire.Message, client clientTrace) oteltrace.SpanContext {
	t := c.o.Telemetry
	name, attributes := c.target(m)
	s := &span{t: t, shown: c.shown, open: c.o.Open, id: string(m.ID()), start: time.Now(), target: append(attributes, t.server...), transport: transportKey.String(c.transport)}
	s.ctx = client.remote()
	s.otel = oteltrace.SpanFromContext(context.Background()) // a span that does nothing
	if t.tracer != nil {
		attributes := append(s.target[:len(s.target):len(s.target)], s.transport, requestIDKey.String(c.shown(idText(m.ID()))))
		options := []oteltrace.SpanStartOption{oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithTimestamp(s.start), oteltrace.WithAttributes(attributes...)}
		if carrier := c.o.Carrier(m.ID()); !client.parent.IsValid() {
			s.ctx = oteltrace.ContextWithSpanContext(s.ctx, carrier)
		} else if carrier.IsValid() {
			options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: carrier}))
		}
		s.ctx, s.otel = t.tracer.Start(s.ctx, name, options...)
	}
	c.o.Open.add(s)
	t.inFlight.Add(s.ctx, 1, metric.WithAttributes(t.server...))
	call.Listen(false, s.note)
	call.OnReply(s.reply)
	return s.otel.SpanContext()
}

// OpenSpans holds the spans of a connection's calls in flight, also across configuration
// reloads. The zero value has none. There may be very many: see limits.in_flight.
type OpenSpans struct {
	mu   sync.Mutex
	byID map[string][]*span // by raw request id, oldest first
}

func (o *OpenSpans) add(s *span) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byID == nil {
		o.byID = map[string][]*span{}
	}
	o.byID[s.id] = append(o.byID[s.id], s)
}

func (o *OpenSpans) remove(s *span) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if rest := slices.DeleteFunc(o.byID[s.id], func(other *span) bool { return other == s }); len(rest) > 0 {
		o.byID[s.id] = rest
	} else {
		delete(o.byID, s.id)
	}
}

// cancel ends the span of the oldest call with a raw id that a peer has cancelled, because it may have no
// reply. Of the calls, a server may cancel only subscriptions (2026-07-28, basic/patterns/cancellation); in
// earlier revisions it cancels its own requests, whose ids may be those of calls.
func (o *OpenSpans) cancel(by wire.Peer, id []byte) {
	o.mu.Lock()
	var s *span
	if i := slices.IndexFunc(o.byID[string(id)], func(s *span) bool {
		return by == wire.Client || s.target[0] == methodKey.String("subscriptions/listen")
	}); i >= 0 {
		s = o.byID[string(id)][i]
	}
	o.mu.Unlock()
	if s != nil {
		o.remove(s)
		s.end(errCancelled, false, nil)
	}
}

// Close ends the spans of calls without a reply, at the end of the connection.
func (o *OpenSpans) Close() {
	o.mu.Lock()
	all := o.byID
	o.byID = nil
	o.mu.Unlock()
	for _, spans := range all {
		for _, s := range spans {
			s.end(errNoReply, true, nil)
		}
	}
}
