package trace_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// observed returns a Telemetry, and the readers of its spans and metrics.
func observed(t testing.TB) (*trace.Telemetry, *tracetest.InMemoryExporter, *sdkmetric.ManualReader) {
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	telemetry, err := trace.NewTelemetry(trace.TelemetryOptions{
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer(trace.Scope),
		Meter:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(trace.Scope),
	})
	testkit.Check(t, err)
	return telemetry, spans, reader
}

// request handles a frame with the layer.
func request(t testing.TB, h middleware.Handler, call *relayed.Call, frame string) *wire.Message {
	var m wire.Message
	m.Reset(wire.Client, []byte(frame))
	var s wire.Scanner
	if s.Look(&m); !m.Plain() {
		t.Fatalf("not plain: %s", frame)
	}
	testkit.Check(t, h(&relayed.Context{Context: context.Background(), Call: call}, &m))
	return &m
}

type attr = attribute.KeyValue

func last(context.Context, *wire.Message) error { return nil }

// The span of a call without a reply is exported once, when the session ends.
func TestClose(t *testing.T) {
	telemetry, spans, reader := observed(t)
	var open trace.OpenSpans
	h := middleware.Chain(last, trace.New(trace.Options{Telemetry: telemetry, Open: &open}).Layer())
	var calls [3]relayed.Call
	for i := range calls {
		calls[i].Reset(nil, true)
		request(t, h, &calls[i], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	if got := sum(t, reader, "attache.calls.in_flight"); got != 3 {
		t.Errorf("%d calls in flight, want 3", got)
	}
	open.Close()
	open.Close()
	for i := range calls { // late replies
		ctx := &relayed.Context{Context: context.Background(), Call: &calls[i]}
		if err := calls[i].Hooks()[0](ctx, wire.ResultReply([]byte("1"), []byte("{}"))); err != nil {
			t.Error(err)
		}
	}
	for _, s := range spans.GetSpans() {
		if !slices.ContainsFunc(s.Attributes, func(kv attr) bool { return kv.Key == "error.type" && kv.Value.AsString() == "no_reply" }) {
			t.Errorf("span %+v", s)
		}
	}
	if n := len(spans.GetSpans()); n != 3 {
		t.Errorf("%d spans, want 3", n)
	}
	if flight, over := sum(t, reader, "attache.calls.in_flight"), sum(t, reader, "attache.calls"); flight != 0 || over != 3 {
		t.Errorf("%d calls in flight and %d over, want 0 and 3", flight, over)
	}
}

// What is exported has no secret, wherever a client puts one, and no part of one that is cut.
func TestSecretsAreNotExported(t *testing.T) {
	secret := "key-" + strings.Repeat("k", 300)
	hide := func(text string) string { return strings.ReplaceAll(text, secret, "[hidden]") }
	telemetry, spans, reader := observed(t)
	h := middleware.Chain(last, trace.New(trace.Options{Telemetry: telemetry, Hide: hide}).Layer())
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"%s"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"%s"}`,
		`{"jsonrpc":"2.0","id":"%s","method":"ping"}`,
	} {
		var call relayed.Call
		call.Reset(nil, true)
		call.SetValue(sessionstate.ContextKey{}, &sessionstate.Context{Session: sessionstate.Fact{Value: secret}})
		m := request(t, h, &call, fmt.Sprintf(frame, secret))
		ctx := &relayed.Context{Context: context.Background(), Call: &call}
		if err := call.Hooks()[0](ctx, wire.ResultReply(m.ID(), []byte("{}"))); err != nil {
			t.Error(err)
		}
	}
	var metrics metricdata.ResourceMetrics
	testkit.Check(t, reader.Collect(context.Background(), &metrics))
	if text := fmt.Sprintf("%+v %+v", spans.GetSpans(), metrics); strings.Contains(text, "key-") || len(spans.GetSpans()) != 4 {
		t.Errorf("%d spans: %s", len(spans.GetSpans()), text)
	}
}

// A cancellation ends a call of its own connection, but not a call of another connection with
// the same id.
func TestCancelOfAnotherConnection(t *testing.T) {
	telemetry, spans, _ := observed(t)
	one := middleware.Chain(last, trace.New(trace.Options{Telemetry: telemetry}).Layer())
	other := middleware.Chain(last, trace.New(trace.Options{Telemetry: telemetry}).Layer())
	var call, none relayed.Call
	call.Reset(nil, true)
	request(t, one, &call, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	none.Reset(nil, false)
	request(t, other, &none, cancel)
	if n := len(spans.GetSpans()); n != 0 {
		t.Errorf("%d spans ended by another connection", n)
	}
	request(t, one, &none, cancel)
	if n := len(spans.GetSpans()); n != 1 {
		t.Errorf("%d spans ended, want 1", n)
	}
}

// Both directions and cancellations run at the same time, for the race detector.
func TestBothDirections(t *testing.T) {
	telemetry, spans, reader := observed(t)
	var open trace.OpenSpans
	h := middleware.Chain(last, trace.New(trace.Options{Telemetry: telemetry, Propagate: true, Open: &open}).Layer())
	const n = 200
	calls := make([]relayed.Call, n)
	sent := make(chan int, n)
	var replies sync.WaitGroup
	replies.Go(func() {
		for i := range sent {
			(*middleware.Call)(&calls[i]).Note(middleware.Note{Layer: "x", Act: middleware.Edited})
			ctx := &relayed.Context{Context: context.Background(), Call: &calls[i]}
			if err := calls[i].Hooks()[0](ctx, wire.ResultReply([]byte("1"), []byte("{}"))); err != nil {
				t.Error(err)
			}
		}
	})
	var none relayed.Call
	for i := range calls {
		calls[i].Reset(nil, true)
		request(t, h, &calls[i], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`, i%3))
		sent <- i
		none.Reset(nil, false)
		request(t, h, &none, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	}
	close(sent)
	replies.Wait()
	open.Close()
	if got := len(spans.GetSpans()); got != n {
		t.Errorf("%d spans, want %d", got, n)
	}
	if flight := sum(t, reader, "attache.calls.in_flight"); flight != 0 {
		t.Errorf("%d calls in flight", flight)
	}
}

// sum returns the total of a counter.
func sum(t *testing.T, reader *sdkmetric.ManualReader, name string) (n int64) {
	var data metricdata.ResourceMetrics
	testkit.Check(t, reader.Collect(t.Context(), &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				n += p.Value
			}
		}
	}
	return n
}

// A request that would become too long passes unchanged, and its trace is then the one that
// the server receives.
func TestTooLongToEdit(t *testing.T) {
	h := middleware.Chain(last, trace.New(trace.Options{Propagate: true}).Layer())
	head, tail := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":"`, `"}}}`
	var call relayed.Call
	call.Reset(nil, true)
	frame := head + strings.Repeat("x", wire.MaxEdited-len(head)-len(tail)) + tail
	if m := request(t, h, &call, frame); m.Edited() || (*middleware.Call)(&call).Trace() != (middleware.Trace{}) {
		t.Errorf("edited %t, trace %+v", m.Edited(), (*middleware.Call)(&call).Trace())
	}
	call.Reset(nil, true)
	tail = `"},"_meta":{"tracestate":"a=1","traceparent":"no"}}}` // replacing it makes it longer
	frame = head + strings.Repeat("x", wire.MaxEdited-len(head)-len(tail)) + tail
	if m := request(t, h, &call, frame); m.Edited() || (*middleware.Call)(&call).Trace() != (middleware.Trace{}) {
		t.Errorf("edited %t, trace %+v", m.Edited(), (*middleware.Call)(&call).Trace())
	}
}

// A request without trace context costs no allocation, so that every chain can have the layer.
func TestNoAllocations(t *testing.T) {
	h := middleware.Chain(last, trace.New(trace.Options{}).Layer())
	for _, frame := range plainFrames() {
		var m wire.Message
		var s wire.Scanner
		m.Reset(wire.Client, []byte(frame))
		s.Look(&m)
		var call relayed.Call
		ctx := &relayed.Context{Context: context.Background(), Call: &call}
		if n := testing.AllocsPerRun(100, func() { call.Reset(nil, true); _ = h(ctx, &m) }); n != 0 {
			t.Errorf("%v allocations for %s", n, frame)
		}
	}
}

func plainFrames() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
	}
}

func BenchmarkTrace(b *testing.B) {
	telemetry, err := trace.NewTelemetry(trace.TelemetryOptions{
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(noter{})).Tracer(trace.Scope),
		Meter:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter(trace.Scope),
	})
	if err != nil {
		b.Fatal(err)
	}
	frames := plainFrames()
	traced := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"traceparent":"` + valid + `"}}}`
	for _, bench := range []struct {
		name  string
		o     trace.Options
		frame string
	}{
		{"no layer", trace.Options{}, frames[1]},
		{"legacy", trace.Options{}, frames[0]},
		{"modern", trace.Options{}, frames[1]},
		{"traced", trace.Options{}, traced},
		{"propagated", trace.Options{Propagate: true}, traced},
		{"new trace", trace.Options{Propagate: true}, frames[0]},
		{"exported", trace.Options{Propagate: true, Telemetry: telemetry}, traced},
	} {
		b.Run(bench.name, func(b *testing.B) {
			h := middleware.Chain(last, trace.New(bench.o).Layer())
			if bench.name == "no layer" {
				h = last
			}
			var call relayed.Call
			ctx := &relayed.Context{Context: context.Background(), Call: &call}
			reply := wire.ResultReply([]byte("1"), []byte("{}"))
			var m wire.Message
			var s wire.Scanner
			b.ReportAllocs()
			for b.Loop() {
				m.Reset(wire.Client, []byte(bench.frame))
				s.Look(&m)
				call.Reset(nil, true)
				_ = h(ctx, &m)
				for _, hook := range call.Hooks() {
					_ = hook(ctx, reply)
				}
			}
		})
	}
}

// BenchmarkManyOpen measures a call while many older ones have no reply.
func BenchmarkManyOpen(b *testing.B) {
	telemetry, err := trace.NewTelemetry(trace.TelemetryOptions{Meter: sdkmetric.NewMeterProvider().Meter(trace.Scope)})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := middleware.Chain(last, trace.New(trace.Options{Telemetry: telemetry}).Layer())
			var call relayed.Call
			for i := range n {
				call.Reset(nil, true)
				request(b, h, &call, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
			}
			ctx := &relayed.Context{Context: context.Background(), Call: &call}
			reply := wire.ResultReply([]byte("-1"), []byte("{}"))
			for b.Loop() {
				call.Reset(nil, true)
				request(b, h, &call, `{"jsonrpc":"2.0","id":-1,"method":"ping"}`)
				_ = call.Hooks()[0](ctx, reply)
			}
		})
	}
}
