// Package telemetry exports spans and metrics as the OTEL_ variables ask.
package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/middleware/trace/otlp"
)

// flushTime is how long the end of a session waits for unsent data: long enough for a new TLS
// connection to a collector that is far away. Clients kill attache after 2 s; then only this data is
// lost, as the server has ended before.
const flushTime = time.Second

// Telemetry exports what one run records. It uses nothing of OpenTelemetry that is
// global to the process.
type Telemetry struct {
	telemetry *trace.Telemetry
	tracer    oteltrace.Tracer              // nil for none
	stop      []func(context.Context) error // of the SDK's providers
	ending    chan struct{}                 // closed when the session is over
	abort     context.CancelFunc            // ends requests under way
}

// Start starts the export that the OTEL_ variables configure. Without one it returns nil, and
// nothing runs.
func Start(p cli.Process, server, version string, log *slog.Logger) *Telemetry {
	o, problems := readTelemetry(p.Getenv)
	for _, err := range problems {
		log.Warn(err.Error())
	}
	if o.traces.off() && o.metrics.off() {
		return nil
	}
	ctx, abort := context.WithCancel(context.Background())
	t := &Telemetry{ending: make(chan struct{}), abort: abort}
	e := exporterOptions{p: p, ctx: ctx, ending: t.ending, failed: warnOnce(log), version: version, resource: ownResource(ctx, version, log)}
	to := trace.TelemetryOptions{Server: server}
	var err error
	if !o.traces.off() {
		if to.Tracer, err = t.newTracer(e, o.traces); err != nil {
			log.Warn("spans are not exported", "err", err)
		}
		t.tracer = to.Tracer
	}
	if !o.metrics.off() {
		if to.Meter, err = t.meter(e, o.metrics); err != nil {
			log.Warn("metrics are not exported", "err", err)
		}
	}
	if t.telemetry, err = trace.NewTelemetry(to); err != nil {
		log.Warn("some metrics are not exported", "err", err)
	}
	return t
}

// Recorder returns what the layer trace records to, nil for nothing.
func (t *Telemetry) Recorder() *trace.Telemetry {
	if t == nil {
		return nil
	}
	return t.telemetry
}

// Tracer returns what makes spans, nil if none are exported.
func (t *Telemetry) Tracer() oteltrace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Close sends what is left, within [flushTime]. Close the connections first.
func (t *Telemetry) Close() {
	if t == nil {
		return
	}
	close(t.ending)
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, stop := range t.stop {
		wg.Go(func() { stop(ctx) }) // it has logged what it could not send
	}
	wg.Wait()
	t.abort()
}

// exporterOptions are what the exporters of both signals need.
type exporterOptions struct {
	p        cli.Process
	ctx      context.Context
	ending   <-chan struct{}
	failed   func(error)
	version  string
	resource *resource.Resource
}

// configure completes options with what the variables do not say.
func (e exporterOptions) configure(o otlp.Options) otlp.Options {
	o.Context, o.Ending, o.Failed = e.ctx, e.ending, e.failed
	return o
}

// warnOnce returns a function that logs only the first failure: a collector
// that is down stays down for a while, and is not the session's concern.
func warnOnce(log *slog.Logger) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			log.Warn("the collector did not take spans or metrics, which are dropped while it does not; calls go on", "err", err)
		})
	}
}

// newTracer returns a tracer whose spans are sent to the exporters that o names.
func (t *Telemetry) newTracer(e exporterOptions, o signalSettings) (oteltrace.Tracer, error) {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(e.resource)}
	if o.otlp != nil {
		exporter, err := otlp.NewSpanExporter(e.configure(*o.otlp))
		if err != nil {
			return nil, err
		}
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	if o.console {
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(e.p.Stderr)) // stdout is the protocol's
		if err != nil {
			return nil, err
		}
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.stop = append(t.stop, provider.Shutdown)
	return provider.Tracer(trace.Scope, oteltrace.WithInstrumentationVersion(e.version), oteltrace.WithSchemaURL(trace.SchemaURL)), nil
}

// meter returns the source of instruments whose readings go where o says.
func (t *Telemetry) meter(e exporterOptions, o signalSettings) (metric.Meter, error) {
	options := []sdkmetric.Option{sdkmetric.WithResource(e.resource), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter)}
	if o.otlp != nil {
		exporter, err := otlp.NewMetricExporter(e.configure(*o.otlp))
		if err != nil {
			return nil, err
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	if o.console {
		exporter, err := stdoutmetric.New(stdoutmetric.WithWriter(e.p.Stderr))
		if err != nil {
			return nil, err
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.stop = append(t.stop, provider.Shutdown)
	return provider.Meter(trace.Scope, metric.WithInstrumentationVersion(e.version), metric.WithSchemaURL(trace.SchemaURL)), nil
}

// ownResource says who exports: attache, unless OTEL_SERVICE_NAME or
// OTEL_RESOURCE_ATTRIBUTES say otherwise. It has no user and no host in it.
func ownResource(ctx context.Context, version string, log *slog.Logger) *resource.Resource {
	r, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "attache"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil {
		log.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be read in full: write name=value,name=value", "err", err)
	}
	return r
}
