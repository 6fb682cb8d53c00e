package trace

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TelemetryOptions are the destinations of spans and metrics.
type TelemetryOptions struct {
	// Tracer creates the spans; nil means no spans.
	Tracer oteltrace.Tracer
	// Meter creates the instruments; nil means no metrics.
	Meter metric.Meter
	// Server is the name of the wrapped server; "" leaves it out.
	Server string
}

// Telemetry creates spans and metrics of calls, for all connections.
type Telemetry struct {
	tracer oteltrace.Tracer
	server []attribute.KeyValue

	duration        metric.Float64Histogram
	calls           metric.Int64Counter
	refusals, edits metric.Int64Counter
	restarts        metric.Int64Counter
	inFlight        metric.Int64UpDownCounter
}

// NewTelemetry creates the instruments. It returns the errors of the meter; the Telemetry
// can be used nevertheless.
func NewTelemetry(o TelemetryOptions) (*Telemetry, error) {
	t := &Telemetry{tracer: o.Tracer}
	if o.Server != "" {
		t.server = []attribute.KeyValue{serverKey.String(o.Server)}
	}
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	var errs [6]error
	t.duration, errs[0] = o.Meter.Float64Histogram("mcp.server.operation.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(durationBounds()...),
		metric.WithDescription("MCP request or notification duration as observed on the receiver from the time it was received until the result or ack is sent."))
	t.calls, errs[1] = o.Meter.Int64Counter("attache.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Requests of the client that are over."))
	t.refusals, errs[2] = o.Meter.Int64Counter("attache.refusals", metric.WithUnit("{refusal}"),
		metric.WithDescription("Decisions of a layer against a call."))
	t.edits, errs[3] = o.Meter.Int64Counter("attache.edits", metric.WithUnit("{edit}"),
		metric.WithDescription("Members of calls and replies that a layer has set, changed or removed."))
	t.inFlight, errs[4] = o.Meter.Int64UpDownCounter("attache.calls.in_flight", metric.WithUnit("{call}"),
		metric.WithDescription("Requests of the client that wait for their reply."))
	t.restarts, errs[5] = o.Meter.Int64Counter("attache.server.restarts", metric.WithUnit("{restart}"),
		metric.WithDescription("Starts of a server that had ended under its client."))
	return t, errors.Join(errs[:]...)
}

// ServerRestarted counts a restart of the server. It does nothing if t is nil.
func (t *Telemetry) ServerRestarted() {
	if t != nil {
		t.restarts.Add(context.Background(), 1, metric.WithAttributes(t.server...))
	}
}

// start starts the span of a request and returns its traceparent, "" without a tracer.
// The sampler decides whether the span is recorded.
func (t *Telemetry) start(c *Conn, call *middleware.Call, m *wire.Message, client clientTrace) traceparent {
	name, attributes := target(m)
	s := &span{t: t, open: c.o.Open, id: string(m.ID()), start: time.Now(), target: append(attributes, t.server...), transport: transportKey.String(c.transport)}
	s.ctx = remote(client)
	s.otel = oteltrace.SpanFromContext(context.Background()) // a span that does nothing
	if t.tracer != nil {
		attributes := append(s.target[:len(s.target):len(s.target)], s.transport, requestIDKey.String(clip(idText(m.ID()))))
		options := []oteltrace.SpanStartOption{oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithTimestamp(s.start), oteltrace.WithAttributes(attributes...)}
		if carrier := c.o.Carrier(m.ID()); client.parent == "" {
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
	own := s.otel.SpanContext()
	if !own.IsValid() {
		return ""
	}
	return compose(own.TraceID().String(), own.SpanID().String(), byte(own.TraceFlags()))
}

// OpenSpans holds the spans of a connection's calls in flight, also across configuration
// reloads. The zero value has none.
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

// cancel ends the span of the oldest call with a raw id, because it may have no reply.
func (o *OpenSpans) cancel(id []byte) {
	o.mu.Lock()
	var s *span
	if all := o.byID[string(id)]; len(all) > 0 {
		s = all[0]
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
