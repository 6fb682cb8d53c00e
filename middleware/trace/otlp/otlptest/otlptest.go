// Package otlptest is an OpenTelemetry collector for tests. It decodes requests with the
// generated messages of opentelemetry-proto, and formats them as lines that a test can
// compare.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector receives spans at /v1/traces and metrics at /v1/metrics.
type Collector struct {
	*httptest.Server
	// Answer, if not nil, is called with each request. If it returns true, it has answered
	// the request. Set it before the first request.
	Answer func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	spans    []string
	metrics  []string // of the last request, because they are cumulative
	problems []string
}

// Start starts a collector, which the caller must close.
func Start() *Collector {
	c := &Collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	return c
}

// Lines returns the spans in order, then the last values of the metrics, then the errors in
// requests.
func (c *Collector) Lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.spans, c.metrics, c.problems)
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	if c.Answer != nil && c.Answer(w, r) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.receive(r); err != nil {
		c.problems = append(c.problems, "problem "+err.Error())
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (c *Collector) receive(r *http.Request) error {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s with %q", r.Method, r.Header.Get("Content-Type"))
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	switch r.URL.Path { // an Export…ServiceRequest has the same fields as …Data
	case "/v1/traces":
		var m trace.TracesData
		if err := unmarshal(b, &m); err != nil {
			return err
		}
		c.addSpans(&m)
	case "/v1/metrics":
		var m metrics.MetricsData
		if err := unmarshal(b, &m); err != nil {
			return err
		}
		c.setMetrics(&m)
	default:
		return fmt.Errorf("nothing is at %s", r.URL.Path)
	}
	return nil
}

// unmarshal decodes a message, and returns an error if it has unknown fields.
func unmarshal(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return err
	}
	if again, err := (proto.MarshalOptions{}).Marshal(m); err != nil || len(again) != len(b) {
		return fmt.Errorf("%d bytes are %d when written again (%v)", len(b), len(again), err)
	}
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		return fmt.Errorf("unknown fields")
	}
	return nil
}

func (c *Collector) addSpans(m *trace.TracesData) {
	for _, r := range m.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			of := origin(r.Resource.Attributes, scope.Scope, scope.SchemaUrl)
			for _, s := range scope.Spans {
				c.spans = append(c.spans, "span "+spanLine(s)+" of "+of)
			}
		}
	}
}

func spanLine(s *trace.Span) string {
	parent := "none"
	if len(s.ParentSpanId) > 0 {
		parent = hex.EncodeToString(s.ParentSpanId)
	}
	if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano == 0 {
		parent += " with impossible times"
	}
	state := ""
	if s.TraceState != "" {
		state = " state " + s.TraceState
	}
	links := ""
	for _, l := range s.Links {
		links += fmt.Sprintf(" link %x %x flags %x %s %s", l.TraceId, l.SpanId, l.Flags, l.TraceState, attributes(l.Attributes))
	}
	return fmt.Sprintf("%q %s %s trace %x span %x parent %s flags %x%s %s%s",
		s.Name, s.Kind, s.Status.GetCode(), s.TraceId, s.SpanId, parent, s.Flags, state, attributes(s.Attributes), links)
}

func (c *Collector) setMetrics(m *metrics.MetricsData) {
	c.metrics = nil
	for _, r := range m.ResourceMetrics {
		for _, scope := range r.ScopeMetrics {
			of := origin(r.Resource.Attributes, scope.Scope, scope.SchemaUrl)
			for _, one := range scope.Metrics {
				c.metrics = append(c.metrics, points(one, of)...)
			}
		}
	}
}

func points(m *metrics.Metric, of string) (lines []string) {
	head := "metric " + m.Name + " " + m.Unit + " "
	if sum := m.GetSum(); sum != nil {
		for _, p := range sum.DataPoints {
			lines = append(lines, fmt.Sprintf("%s%d monotonic %t %s %s of %s", head, p.GetAsInt(), sum.IsMonotonic, sum.AggregationTemporality, attributes(p.Attributes), of))
		}
	}
	if h := m.GetHistogram(); h != nil {
		for _, p := range h.DataPoints {
			total := uint64(0)
			for _, n := range p.BucketCounts {
				total += n
			}
			plausible := p.GetSum() > 0 && p.GetMin() > 0 && p.GetMax() >= p.GetMin() && total == p.Count && len(p.BucketCounts) == len(p.ExplicitBounds)+1
			lines = append(lines, fmt.Sprintf("%scount %d plausible %t bounds %v %s %s of %s", head, p.Count, plausible, p.ExplicitBounds, h.AggregationTemporality, attributes(p.Attributes), of))
		}
	}
	slices.Sort(lines)
	return lines
}

func origin(resource []*commonpb.KeyValue, scope *commonpb.InstrumentationScope, schema string) string {
	service := ""
	for _, kv := range resource {
		if kv.Key == "service.name" {
			service = kv.Value.GetStringValue()
		}
	}
	return service + " " + scope.GetName() + " " + schema
}

func attributes(all []*commonpb.KeyValue) string {
	var out []string
	for _, kv := range all {
		out = append(out, kv.Key+"="+value(kv.Value))
	}
	slices.Sort(out)
	return "{" + strings.Join(out, " ") + "}"
}

func value(v *commonpb.AnyValue) string {
	switch x := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(x.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(x.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(x.DoubleValue)
	case *commonpb.AnyValue_ArrayValue:
		var out []string
		for _, e := range x.ArrayValue.Values {
			out = append(out, value(e))
		}
		return fmt.Sprint(out)
	}
	return "?"
}
