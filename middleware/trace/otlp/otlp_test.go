package otlp_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/trace/otlp"
	"github.com/attache-mcp/attache/middleware/trace/otlp/otlptest"
)

func own() *resource.Resource {
	return resource.NewSchemaless(attribute.String("service.name", "test"))
}

func collector(t *testing.T) *otlptest.Collector {
	c := otlptest.Start()
	t.Cleanup(c.Close)
	return c
}

func want(t *testing.T, c *otlptest.Collector, lines ...string) {
	t.Helper()
	if got, want := strings.Join(c.Lines(), "\n"), strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The encoded spans can be decoded with the generated messages.
func TestSpans(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		c := collector(t)
		e, err := otlp.NewSpanExporter(otlp.Options{Endpoint: c.URL + "/v1/traces", Gzip: compressed, Failed: func(err error) { t.Error(err) }})
		testkit.Check(t, err)
		p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(own()), sdktrace.WithIDGenerator(&ids{}))
		state, _ := trace.ParseTraceState("rojo=00f067aa0ba902b7")
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte{15: 9}, SpanID: [8]byte{7: 8}, TraceFlags: 1, TraceState: state})
		_, s := p.Tracer("scope", trace.WithSchemaURL("https://schema")).Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "child",
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("s", "é"), attribute.String("empty", ""), attribute.Int("n", -1),
				attribute.Bool("yes", true), attribute.Bool("no", false), attribute.Float64("f", 1.5), attribute.StringSlice("l", []string{"a", ""})))
		s.SetStatus(codes.Error, "")
		s.End()
		_, s = p.Tracer("other").Start(t.Context(), "root", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(
			trace.Link{SpanContext: parent.WithRemote(true), Attributes: []attribute.KeyValue{attribute.String("why", "test")}},
			trace.Link{SpanContext: s.SpanContext()}))
		s.SetStatus(codes.Ok, "")
		s.End()
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, c,
			`span "child" SPAN_KIND_SERVER STATUS_CODE_ERROR trace 00000000000000000000000000000009 span 0000000000000001 parent 0000000000000008 flags 301 state rojo=00f067aa0ba902b7 {empty= f=1.5 l=[a ] n=-1 no=false s=é yes=true} of test scope https://schema`,
			`span "root" SPAN_KIND_CLIENT STATUS_CODE_OK trace 00000000000000000000000000000002 span 0000000000000002 parent none flags 101 {} link 00000000000000000000000000000009 0000000000000008 flags 301 rojo=00f067aa0ba902b7 {why=test} link 00000000000000000000000000000009 0000000000000001 flags 101 rojo=00f067aa0ba902b7 {} of test other `)
	}
}

// ids generates ids that are numbers.
type ids struct{ n byte }

func (g *ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	span := g.NewSpanID(ctx, trace.TraceID{})
	return trace.TraceID{15: g.n}, span
}

func (g *ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	g.n++
	return trace.SpanID{7: g.n}
}

func TestMetrics(t *testing.T) {
	c := collector(t)
	e, err := otlp.NewMetricExporter(otlp.Options{Endpoint: c.URL + "/v1/metrics", Failed: func(err error) { t.Error(err) }})
	testkit.Check(t, err)
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e)), sdkmetric.WithResource(own()))
	m := p.Meter("scope", metric.WithSchemaURL("https://schema"))
	count, _ := m.Int64Counter("count", metric.WithUnit("{x}"))
	count.Add(t.Context(), 2, metric.WithAttributes(attribute.String("a", "1")))
	count.Add(t.Context(), 3, metric.WithAttributes(attribute.String("a", "2")))
	level, _ := m.Int64UpDownCounter("level")
	level.Add(t.Context(), -4)
	duration, _ := m.Float64Histogram("duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(0.5, 1))
	for _, d := range []float64{0.25, 0.75, 3} {
		duration.Record(t.Context(), d)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	const cumulative = "AGGREGATION_TEMPORALITY_CUMULATIVE"
	want(t, c,
		"metric count {x} 2 monotonic true "+cumulative+" {a=1} of test scope https://schema",
		"metric count {x} 3 monotonic true "+cumulative+" {a=2} of test scope https://schema",
		"metric level  -4 monotonic false "+cumulative+" {} of test scope https://schema",
		"metric duration s count 3 plausible true bounds [0.5 1] "+cumulative+" {} of test scope https://schema")
}

// Delta counts from the last export; a level has no beginning.
func TestDelta(t *testing.T) {
	c := collector(t)
	e, err := otlp.NewMetricExporter(otlp.Options{Endpoint: c.URL + "/v1/metrics", Delta: true, Failed: func(err error) { t.Error(err) }})
	testkit.Check(t, err)
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e)), sdkmetric.WithResource(own()))
	m := p.Meter("scope")
	count, _ := m.Int64Counter("count")
	level, _ := m.Int64UpDownCounter("level")
	duration, _ := m.Float64Histogram("duration", metric.WithExplicitBucketBoundaries(1))
	for _, n := range []int64{2, 3} {
		count.Add(t.Context(), n)
		level.Add(t.Context(), n)
		duration.Record(t.Context(), 0.5)
		if err := p.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want(t, c,
		"metric count  3 monotonic true AGGREGATION_TEMPORALITY_DELTA {} of test scope ",
		"metric level  5 monotonic false AGGREGATION_TEMPORALITY_CUMULATIVE {} of test scope ",
		"metric duration  count 1 plausible true bounds [1] AGGREGATION_TEMPORALITY_DELTA {} of test scope ")
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The error for an invalid endpoint shows it, unless it may contain a password.
func TestInvalidEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"localhost:4318/v1/traces":           `"localhost:4318/v1/traces" is not an endpoint`,
		"https://ada:k%y@collector:4318":     "the endpoint is not valid",
		"https://collector:port?api_key=k%y": "the endpoint is not valid",
	} {
		_, err := otlp.NewSpanExporter(otlp.Options{Endpoint: endpoint})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "k%y") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// Each answer of a collector is retried or not, and reported to Failed.
func TestAnswers(t *testing.T) {
	const secret = "k3y"
	for _, test := range []struct {
		name    string
		answers []int
		asked   int
		failure string // "" for none
	}{
		{"accepted", []int{200}, 1, ""},
		{"busy, then accepted", []int{503, 429, 202}, 3, ""},
		{"busy for too long", []int{503, 503, 503, 200}, 3, "the collector answered 503 Service Unavailable"},
		{"refused", []int{401, 200}, 1, "the collector answered 401 Unauthorized"},
		{"moved, but the headers are not sent there", []int{307, 200}, 1, "the collector answered 307 Temporary Redirect"},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			c := collector(t)
			c.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Api-Key") != secret {
					t.Errorf("headers %v", r.Header)
				}
				w.Header().Set("Location", "/elsewhere?"+secret)
				w.WriteHeader(test.answers[asked])
				asked++
				return true
			}
			failure := ""
			e := exporter(t, otlp.Options{Endpoint: c.URL + "/v1/traces?" + secret, Headers: map[string]string{"api-key": secret},
				Failed: func(err error) { failure += err.Error() }})
			otlp.Hasten(e)
			export(t, e)
			if asked != test.asked || !strings.HasSuffix(failure, test.failure) || (failure == "") != (test.failure == "") || strings.Contains(failure, secret) {
				t.Errorf("asked %d times, want %d; failed with %q, want %q", asked, test.asked, failure, test.failure)
			}
		})
	}
}

// A collector that takes only some of the spans says so in its answer (an
// ExportTraceServiceResponse), which is not sent again.
func TestRejected(t *testing.T) {
	for _, test := range []struct{ name, kind, answer, failure string }{
		{"all accepted", "application/x-protobuf", "", ""},
		{"only a remark", "application/x-protobuf", "\n\x07\x12\x05quota", ""},
		{"some rejected", "application/x-protobuf", "\n\x09\x08\x03\x12\x05quota", `the collector rejected 3 spans or data points: "quota"`},
		{"invalid", "application/x-protobuf", "\n\x09\x08", ""},
		{"of another kind", "text/plain", "\n\x09\x08\x03\x12\x05quota", ""},
	} {
		asked, failure := 0, ""
		c := collector(t)
		c.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", test.kind)
			io.WriteString(w, test.answer)
			asked++
			return true
		}
		export(t, exporter(t, otlp.Options{Endpoint: c.URL + "/v1/traces", Failed: func(err error) { failure += err.Error() }}))
		if asked != 1 || !strings.HasSuffix(failure, test.failure) || (failure == "") != (test.failure == "") {
			t.Errorf("%s: asked %d times, failed with %q", test.name, asked, failure)
		}
	}
}

// A collector that is busy is left alone for as long as it wants, unless the program ends.
func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		name, header string
		ending       bool
		least        time.Duration
		asked        int
	}{
		{"seconds", "1", false, time.Second, 2},
		{"a date", "", false, time.Second, 2}, // between one and two seconds after the answer
		{"a date in the past", "Sun, 06 Nov 1994 08:49:37 GMT", false, 0, 2},
		{"neither", "soon", false, 0, 2},
		{"ending", "100000000000", true, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := collector(t)
			c.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if asked++; asked == 1 {
					in2s := time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
					w.Header().Set("Retry-After", cmp.Or(test.header, in2s))
					w.WriteHeader(http.StatusTooManyRequests)
				}
				return true
			}
			ended := make(chan struct{})
			if test.ending {
				close(ended)
			}
			e := exporter(t, otlp.Options{Endpoint: c.URL + "/v1/traces", Ending: ended})
			otlp.Hasten(e)
			began := time.Now()
			export(t, e)
			if d := time.Since(began); asked != test.asked || d < test.least || d > test.least+time.Minute {
				t.Errorf("asked %d times within %v", asked, d)
			}
		})
	}
}

// A collector that is down or does not answer is reported without secrets, and does not delay
// the end of the program.
func TestUnreachable(t *testing.T) {
	never := make(chan struct{})
	silent := collector(t)
	silent.Answer = func(_ http.ResponseWriter, r *http.Request) bool { <-never; return true }
	t.Cleanup(func() { close(never) })
	down := collector(t)
	down.Close()
	ended := make(chan struct{})
	close(ended)
	ending, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, o := range map[string]otlp.Options{
		"down":                         {Endpoint: down.URL + "/?secret", Ending: ended},
		"silent":                       {Endpoint: silent.URL + "/?secret", Timeout: time.Millisecond, Ending: ended},
		"silent, and the context ends": {Endpoint: silent.URL + "/?secret", Context: ending},
	} {
		var failures atomic.Int32
		o.Failed = func(err error) {
			failures.Add(1)
			if strings.Contains(err.Error(), "secret") {
				t.Error(err)
			}
		}
		e := exporter(t, o)
		time.AfterFunc(20*time.Millisecond, cancel)
		began := time.Now()
		export(t, e)
		if failures.Load() != 1 || time.Since(began) > time.Minute {
			t.Errorf("%s: %d failures, after %v", name, failures.Load(), time.Since(began))
		}
	}
}

// The pauses between attempts are 1 s and 2 s.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := exporter(t, otlp.Options{Endpoint: "http://127.0.0.1:0/"}) // never dials: no such port
		began := time.Now()
		export(t, e)
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("gave up after %v", d)
		}
	})
}

func TestEndpoint(t *testing.T) {
	for _, bad := range []string{"", "localhost:4318", "/v1/traces", "ftp://x/", "http://", "http://a b/"} {
		if _, err := otlp.NewSpanExporter(otlp.Options{Endpoint: bad}); err == nil {
			t.Errorf("%q is accepted as an endpoint of spans", bad)
		}
		if _, err := otlp.NewMetricExporter(otlp.Options{Endpoint: bad}); err == nil {
			t.Errorf("%q is accepted as an endpoint of metrics", bad)
		}
	}
}

func exporter(t *testing.T, o otlp.Options) sdktrace.SpanExporter {
	e, err := otlp.NewSpanExporter(o)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	return e
}

// export exports one span. A failure is not returned to the SDK as an error.
func export(t *testing.T, e sdktrace.SpanExporter) {
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(e))
	_, s := p.Tracer("scope").Start(t.Context(), "span")
	if err := e.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{s.(sdktrace.ReadOnlySpan)}); err != nil {
		t.Error(err)
	}
}
