package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/middleware/trace/otlp/otlptest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Without a variable that configures an exporter, no exporter is made.
func TestNoTelemetry(t *testing.T) {
	before := runtime.NumGoroutine()
	p := cli.Process{Env: []string{"OTEL_SERVICE_NAME=x", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_HEADERS=a=b"}, Stderr: io.Discard}
	got := Start(p, "", "", slog.New(slog.DiscardHandler))
	if got.Recorder != nil || got.Tracer != nil || runtime.NumGoroutine() > before { // those of other tests may end
		t.Errorf("%+v, and %d goroutines, %d before", got, runtime.NumGoroutine(), before)
	}
	got.Close()
}

// A collector that does not answer delays the end of a session by flushTime at most.
func TestTelemetryEnds(t *testing.T) {
	c := otlptest.Start()
	never := make(chan struct{})
	c.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-never:
		case <-r.Context().Done():
		}
		return true
	}
	defer c.Close()
	defer close(never)
	p := cli.Process{Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}, Stderr: io.Discard}
	tel := Start(p, "", "", slog.New(slog.DiscardHandler))
	var open trace.OpenSpans
	h := middleware.Chain(func(context.Context, *wire.Message) error { return nil }, trace.New(trace.Options{Telemetry: tel.Recorder, Open: &open}).Layer())
	var call relayed.Call
	call.Reset(nil, true)
	m := wire.NewRequest(wire.Client, []byte("1"), "ping", nil)
	testkit.Check(t, h(&relayed.Context{Context: t.Context(), Call: &call}, m))
	open.Close()
	began := time.Now()
	tel.Close()
	if d := time.Since(began); d < flushTime || d > flushTime+5*time.Second { // the exporter itself would wait for longer
		t.Errorf("the end took %v", d)
	}
}

// The data of this process can be told from that of another attache.
func TestInstance(t *testing.T) {
	instance := func() string {
		id, _ := ownResource(t.Context(), "", slog.New(slog.DiscardHandler)).Set().Value("service.instance.id")
		return id.AsString()
	}
	first, second := instance(), instance()
	if _, err := uuid.Parse(first); err != nil || first != second {
		t.Errorf("instances %q and %q of one process: %v", first, second, err)
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=mine")
	if got := instance(); got != "mine" {
		t.Errorf("instance %q, want that of the variable", got)
	}
}

// A front that runs for months reports the second time at which the collector is away, too.
func TestFailuresAreLoggedHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		failed := warnHourly(slog.New(slog.NewTextHandler(&log, nil)))
		for range 3 * 60 {
			failed(errors.New("connection refused"))
			time.Sleep(time.Minute)
		}
		if n := strings.Count(log.String(), "connection refused"); n != 3 {
			t.Errorf("failures of three hours are logged %d times, want 3", n)
		}
	})
}
