package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/telemetry"
	"github.com/attache-mcp/attache/middleware/trace/otlp/otlptest"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front"
)

// A spanRecord is a span as the console exporter prints it.
type spanRecord struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ TraceID, SpanID string }
	SpanKind    int
	Links       []struct{ SpanContext struct{ SpanID string } }
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
}

func (s spanRecord) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.Value
		}
	}
	return nil
}

// Each HTTP request is a span in the trace of its headers. It is the parent of the call in its body,
// unless the call names its own parent: then the call links to the request.
func TestSpans(t *testing.T) {
	var out bytes.Buffer
	p := cli.Process{Env: []string{"OTEL_TRACES_EXPORTER=console"}, Stderr: logging.NewStderr(&out)}
	s, err := tryTestService(p)
	check(t, err)
	s.endpoints[0].start = func(front.Opening, func() []string) (proxy.Upstream, error) { return echoServer(1, nil), nil }
	web := httptest.NewServer(s.handler())
	r := &runningService{s, web.URL + "/mcp"}
	const outer, inner = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
	session := r.open(t)
	r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"carried"}}`, "Mcp-Session-Id", session, "Traceparent", outer)
	r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"linked","_meta":{"traceparent":"`+inner+`"}}}`, "Mcp-Session-Id", session, "Traceparent", outer)
	r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", "unknown", "Traceparent", outer)
	s.endpoints[0].front.Drain(t.Context())
	r.post(t, http.DefaultClient, initialize)
	web.Close()
	s.close() // exports the remaining spans

	calls, requests := map[string]spanRecord{}, map[string]spanRecord{}
	for d := json.NewDecoder(&out); ; {
		var span spanRecord
		if err := d.Decode(&span); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if span.Name == "POST /mcp" {
			requests[span.SpanContext.SpanID] = span
		} else {
			calls[span.Name] = span
		}
	}
	carried, linked := calls["execute_tool carried"], calls["execute_tool linked"]
	request := requests[carried.Parent.SpanID]
	if request.Parent.SpanID != outer[36:52] || request.SpanKind != 2 || carried.SpanContext.TraceID != outer[3:35] {
		t.Errorf("a call is not in the trace of its request: %+v\n%+v", carried, request)
	}
	for key, want := range map[string]any{"http.request.method": "POST", "http.route": "/mcp", "url.path": "/mcp", "url.scheme": "http", "network.protocol.version": "1.1", "http.response.status_code": 200.0} {
		if got := request.attribute(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if carried.attribute("network.transport") != "tcp" {
		t.Error("the transport of a call over HTTP is not tcp")
	}
	if linked.Parent.SpanID != inner[36:52] || len(linked.Links) != 1 || requests[linked.Links[0].SpanContext.SpanID].Parent.SpanID != outer[36:52] {
		t.Errorf("%+v", linked)
	}
	refused := map[any]int{} // by the type of the error, which only attache's own failures have
	for _, span := range requests {
		if status, _ := span.attribute("http.response.status_code").(float64); status >= 400 {
			refused[span.attribute("error.type")]++
		}
	}
	if len(requests) != 5 || len(refused) != 2 || refused[nil] != 1 || refused["503"] != 1 {
		t.Errorf("%d requests, refused: %v", len(requests), refused)
	}
}

// The name and the attributes of a request's span, by the semantic conventions.
func TestDescribeRequest(t *testing.T) {
	e := &endpoint{Server: Server{Path: "/mcp"}}
	for _, test := range []struct{ url, method, proto, want string }{
		{"http://a/mcp?x", "POST", "HTTP/1.1", "POST /mcp: POST http 1.1"},
		{"https://a/mcp", "GET", "HTTP/2.0", "GET /mcp: GET https 2"},
		{"http://a/mcp", "DELETE", "HTTP/1.0", "DELETE /mcp: DELETE http 1.0"},
		{"http://a/mcp", "OPTIONS", "HTTP/1.1", "OPTIONS /mcp: OPTIONS http 1.1"},
		{"http://a/mcp", "BREW", "HTTP/1.1", "HTTP /mcp: BREW _OTHER http 1.1"},
	} {
		r := httptest.NewRequest(test.method, test.url, nil)
		r.Proto = test.proto
		r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(test.proto)
		name, attributes := e.describeRequest(r)
		got := name + ":"
		for _, a := range attributes {
			switch a.Key {
			case originalMethodKey, requestMethodKey, schemeKey, protocolVersionKey:
				got += " " + a.Value.AsString()
			}
		}
		if got != test.want {
			t.Errorf("%s %s: %s, want %s", test.method, test.url, got, test.want)
		}
	}
}

// A collector that does not answer delays the end once, not for each server: requests of several servers
// wait at the same time.
func TestEndpointsCloseTogether(t *testing.T) {
	t.Parallel()
	// attache waits for a second at the end. On a busy machine no request may arrive in that time, so the test tries again.
	for range 10 {
		if requestsAtTheEnd(t) > 2 { // each server sends its spans and its metrics
			return
		}
	}
	t.Error("at most 2 requests waited at the same time")
}

// requestsAtTheEnd returns how many requests to a collector that does not answer waited at the same time when four
// servers ended.
func requestsAtTheEnd(t *testing.T) int64 {
	c := otlptest.Start()
	defer c.Close()
	var waiting, most atomic.Int64
	c.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		n := waiting.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client leaves
		<-r.Context().Done()
		waiting.Add(-1)
		return true
	}
	p := cli.Process{Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}, Stderr: io.Discard}
	settings, err := config.Load(p, nil, []string{"echo"})
	check(t, err)
	o := Options{Process: p, Settings: settings, Log: slog.New(slog.DiscardHandler)}
	paths := []string{"/a", "/b", "/c", "/d"}
	for _, path := range paths {
		o.Servers = append(o.Servers, Server{Path: path, Command: []string{"echo"}, Settings: settings, Load: func() (*config.Settings, error) { return settings, nil }})
	}
	s, err := newService(t.Context(), o)
	check(t, err)
	for _, e := range s.endpoints {
		e.start = func(front.Opening, func() []string) (proxy.Upstream, error) { return echoServer(1, nil), nil }
	}
	web := httptest.NewServer(s.handler())
	for _, path := range paths {
		(&runningService{s, web.URL + path}).post(t, http.DefaultClient, initialize)
	}
	web.Close()
	s.close()
	return most.Load()
}

// Without an exporter the span in the headers of a request is known too.
func TestHeadersWithoutExporter(t *testing.T) {
	e := &endpoint{telemetry: &telemetry.Telemetry{}}
	for header, want := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "b7ad6b7169203331", "nonsense": "0000000000000000", "": "0000000000000000",
	} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Traceparent", header)
		e.traceRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := e.spanOf(func([]byte) *http.Request { return r })(nil).SpanID().String(); got != want {
				t.Errorf("%q: span %s, want %s", header, got, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}

// The log of requests contains neither credentials nor queries.
func TestF58AccessLog(t *testing.T) {
	var out bytes.Buffer
	s := newTestService(t, cli.Process{Stderr: io.Discard})
	s.Log = slog.New(slog.NewTextHandler(logging.NewStderr(&out), &slog.HandlerOptions{Level: slog.LevelDebug}))
	web := httptest.NewServer(s.handler())
	r := &runningService{s, web.URL + "/mcp?access_token=secret"}
	r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "Bearer secret")
	web.Close()
	if got := out.String(); !strings.Contains(got, "msg=request method=POST path=/mcp status=400 ") || strings.Contains(got, "secret") {
		t.Error(got)
	}
}
