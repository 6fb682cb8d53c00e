package remote

import (
	"net/http"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// traceHeaders are the headers of W3C Trace Context and Baggage, and their names in _meta (SEP-414).
var traceHeaders = []struct{ header, meta string }{
	{"Traceparent", "traceparent"}, {"Tracestate", "tracestate"}, {"Baggage", "baggage"},
}

// addTrace sets the trace headers of a request: those that the client of a front has sent, and in their
// place those in meta, its _meta, where attache's own span may be. No tracestate goes with the traceparent
// of another trace.
func (x *exchange) addTrace(m *wire.Message, meta wire.Value) {
	if m.Kind() != wire.Request {
		return
	}
	x.trace = http.Header{}
	if x.s.o.Forward != nil {
		sent := x.s.o.Forward(m.ID())
		for _, t := range traceHeaders {
			if values := sent[t.header]; values != nil {
				x.trace[t.header] = values
			}
		}
	}
	parent := meta.Get("traceparent").Text()
	if !isTraceparent(parent) {
		return
	}
	if trace := parent[:len("00-")+32]; !strings.HasPrefix(x.trace.Get("Traceparent"), trace) {
		delete(x.trace, "Tracestate")
	}
	for _, t := range traceHeaders {
		if text := meta.Get(t.meta).Text(); isHeaderValue(text) {
			x.trace[t.header] = []string{text}
		}
	}
}

// isTraceparent reports whether text has the form of a traceparent. Its ids may be invalid.
func isTraceparent(text string) bool {
	return len(text) >= len("00-")+32+len("-0123456789abcdef-01") && strings.Trim(text, "0123456789abcdef-") == ""
}

// isHeaderValue reports whether text can be the value of such a header, which is printable ASCII.
func isHeaderValue(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
