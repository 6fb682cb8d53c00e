// Package telemetry exports spans and metrics as configured by the OTEL_ variables.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
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

// flushTime is how long a session waits at its end for unsent data: long enough for a new TLS
// connection to a distant collector. Clients kill attache after 2 s. Then only this data is lost,
// because the server has already ended.
const flushTime = time.Second

// stopTime is how long the SDK may then take to stop, and to report that the collector has not answered.
const stopTime = 200 * time.Millisecond

// Telemetry exports the spans and metrics of one run. Of the global state of OpenTelemetry it uses
// only the log.
type Telemetry struct {
	Recorder *trace.Telemetry // for the layer trace; nil if nothing is exported
	Tracer   oteltrace.Tracer // nil if no spans are exported

	stop   []func(context.Context) error // shut down the providers of the SDK
	ending chan struct{}                 // closed when the session has ended
	abort  context.CancelFunc            // cancels running requests; nil if nothing is exported
	failed func(error)                   // logs why data could not be sent
}

// Start starts the export that the OTEL_ variables configure, which may be none.
func Start(p cli.Process, server, version string, log *slog.Logger) *Telemetry {
	o, problems := readTelemetry(p.Getenv)
	for _, err := range problems {
		log.Warn(err.Error())
	}
	if o.traces.off() && o.metrics.off() {
		return &Telemetry{}
	}
	// Otherwise the SDK writes lines to stderr that are not in the format of the log. Its errors are
	// those of requests that end with the session, and of variables, which have warnings.
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("the OpenTelemetry SDK reports an error", "err", err) }))
	ctx, abort := context.WithCancel(context.Background())
	t := &Telemetry{ending: make(chan struct{}), abort: abort, failed: warnHourly(log)}
	e := exporterOptions{p: p, ctx: ctx, ending: t.ending, failed: t.failed, version: version, resource: ownResource(ctx, version, log)}
	to := trace.TelemetryOptions{Server: server}
	var err error
	if !o.traces.off() {
		if to.Tracer, err = t.newTracer(e, o.traces); err != nil {
			log.Warn("spans are not exported", "err", err)
		}
		t.Tracer = to.Tracer
	}
	if !o.metrics.off() {
		if to.Meter, err = t.newMeter(e, o.metrics); err != nil {
			log.Warn("metrics are not exported", "err", err)
		}
	}
	if t.Recorder, err = trace.NewTelemetry(to); err != nil {
		log.Warn("some metrics are not exported", "err", err)
	}
	return t
}

// Close sends the remaining data, within [flushTime]. Close the connections first.
func (t *Telemetry) Close() {
	if t.abort == nil {
		return
	}
	close(t.ending)
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, stop := range t.stop {
		wg.Go(func() {
			// The exporters have reported other errors. A request without an answer fails only after this.
			if errors.Is(stop(ctx), context.DeadlineExceeded) {
				t.failed(fmt.Errorf("it did not answer within %v at the end of the session", flushTime))
			}
		})
	}
	sent := make(chan struct{})
	go func() { wg.Wait(); close(sent) }()
	select {
	case <-sent:
	case <-time.After(flushTime + stopTime): // the console exporter ignores ctx while nobody reads stderr
	}
	t.abort()
}

// exporterOptions are the options that the exporters of both signals share.
type exporterOptions struct {
	p        cli.Process
	ctx      context.Context
	ending   <-chan struct{}
	failed   func(error)
	version  string
	resource *resource.Resource
}

// configure completes options with those that variables cannot set.
func (e exporterOptions) configure(o otlp.Options) otlp.Options {
	o.Context, o.Ending, o.Failed = e.ctx, e.ending, e.failed
	return o
}

// warnHourly returns a function that logs a failure at most once an hour: a collector that is down stays
// down for a while, the session does not depend on it, and a front lives through several such times.
func warnHourly(log *slog.Logger) func(error) {
	var mu sync.Mutex
	var next time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); !now.Before(next) {
			next = now.Add(time.Hour)
			log.Warn("the collector did not take spans or metrics, which are dropped while it does not; calls go on", "err", err)
		}
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
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(e.p.Stderr)) // stdout is for the protocol
		if err != nil {
			return nil, err
		}
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.stop = append(t.stop, provider.Shutdown)
	return provider.Tracer(trace.Scope, oteltrace.WithInstrumentationVersion(e.version), oteltrace.WithSchemaURL(trace.SchemaURL)), nil
}

// newMeter returns a meter whose metrics are sent to the exporters that o names.
func (t *Telemetry) newMeter(e exporterOptions, o signalSettings) (metric.Meter, error) {
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

// instance returns a random name for this process. Without one, a collector takes the metrics of
// several attaches for those of one, whose counters change back and forth.
var instance = sync.OnceValue(uuid.NewString)

// ownResource returns the resource of attache, with the values in OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES. It contains neither the user nor the host.
func ownResource(ctx context.Context, version string, log *slog.Logger) *resource.Resource {
	r, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "attache"), attribute.String("service.version", version),
			attribute.String("service.instance.id", instance())),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil {
		log.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be read in full: write name=value,name=value", "err", err)
	}
	return r
}
