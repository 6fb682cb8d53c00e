package remote_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/remote"
)

// The trace context of a request is also sent in headers (HTTP.md 3.5 and 7.2): that in _meta, else the one that the
// client of a front has sent.
func TestTraceHeaders(t *testing.T) {
	const ours, client, other = "00-0af7651916cd43dd8448eb211c80319c-c6a3b12256e13213-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-11111111111111111111111111111111-b7ad6b7169203331-01"
	long := "a=" + strings.Repeat("1", 8<<10)
	for _, c := range []struct {
		name, meta           string
		sent                 http.Header // nil: no front
		parent, state, extra string      // what the server gets
	}{
		{name: "none", meta: `"progressToken":1`},
		{name: "in _meta", meta: `"traceparent":"` + ours + `","tracestate":"a=1","baggage":"b=2"`, parent: ours, state: "a=1", extra: "b=2"},
		{name: "not a traceparent", meta: `"traceparent":"x","tracestate":"a=1"`},
		{name: "not a header", meta: `"traceparent":"` + ours + `","tracestate":"a\n1","baggage":"é"`, parent: ours},
		{name: "not a text", meta: `"traceparent":["` + ours + `"]`},
		{name: "of the client", meta: `"progressToken":1`, sent: http.Header{"Traceparent": {client}, "Tracestate": {"a=1"}, "Baggage": {"b=2"}, "X-Other": {"c"}},
			parent: client, state: "a=1", extra: "b=2"},
		{name: "both of one trace", meta: `"traceparent":"` + ours + `"`, sent: http.Header{"Traceparent": {client}, "Tracestate": {"a=1"}, "Baggage": {"b=2"}},
			parent: ours, state: "a=1", extra: "b=2"},
		{name: "too long", meta: `"traceparent":"` + ours + `","tracestate":"` + long + `","baggage":"b=2"`, parent: ours, extra: "b=2"},
		{name: "with spaces around", meta: `"traceparent":"` + ours + `","tracestate":"a=1 ","baggage":" b=2"`, parent: ours},
		{name: "too long, of the client", meta: `"progressToken":1`, sent: http.Header{"Traceparent": {client}, "Tracestate": {"a=1", long}, "Baggage": {"b=2", "c=3"}},
			parent: client, extra: "b=2,c=3"},
		{name: "of two traces", meta: `"traceparent":"` + ours + `"`, sent: http.Header{"Traceparent": {other}, "Tracestate": {"a=1"}}, parent: ours},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, version := range map[string]string{"legacy": "", "modern": "," + modernMeta[len(`"_meta":{`):len(modernMeta)-1]} {
				s := &modern{tools: `{"tools":[]}`}
				cl := connect(t, s.ServeHTTP, func(o *remote.Options) {
					if c.sent != nil {
						o.Forward = func([]byte) http.Header { return c.sent }
					}
				})
				cl.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + c.meta + version + `}}}`)
				cl.expect(`{"jsonrpc":"2.0","id":1,…`)
				got := s.sent[0]
				if got.Get("Traceparent") != c.parent || got.Get("Tracestate") != c.state || got.Get("Baggage") != c.extra || got.Get("X-Other") != "" {
					t.Errorf("%s: the server got %v", name, got)
				}
				cl.close()
			}
		})
	}
}
