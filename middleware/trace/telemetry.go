package trace

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TelemetryOptions say where spans and metrics go.
type TelemetryOptions struct {
	// Tracer makes the spans; nil for no spans.
	Tracer oteltrace.Tracer
	// Meter makes the instruments; nil for no metrics.
	Meter metric.Meter
	// Server is what the wrapped server is called; "" leaves it out.
	Server string
}

// Telemetry makes spans and metrics of the calls of one connection: a cancellation
// names a call by its id alone. A layer that takes the place of another, when rules
// are read again, goes on with it.
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

// NewTelemetry makes the instruments. An error is the meter's; the Telemetry works
// all the same, as far as the meter does.
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
