package trace

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	oteltrace "go.opentelemetry.io/otel/trace"
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
