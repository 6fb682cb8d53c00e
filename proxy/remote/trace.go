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

// maxTrace is the length in bytes of the longest value of such a header that is sent on. W3C Baggage demands that much;
// many servers refuse a request with a header of 16 KiB.
const maxTrace = 8 << 10

// addTrace sets the trace headers of a request. They are those that the client of a front has sent. If meta,
// the _meta of the request, has a traceparent, which may be attache's own span, the values in meta replace
// them. A tracestate is never sent with the traceparent of another trace.
func (x *exchange) addTrace(m *wire.Message, meta wire.Value) {
	if m.Kind() != wire.Request {
		return
	}
	x.trace = nil
	if x.s.o.Forward != nil {
		sent := x.s.o.Forward(m.ID())
		for _, t := range traceHeaders {
			x.setTrace(t.header, strings.Join(sent[t.header], ","))
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
		x.setTrace(t.header, meta.Get(t.meta).Text())
	}
}

// setTrace sets a trace header, unless its value cannot be sent.
func (x *exchange) setTrace(name, value string) {
	if !isHeaderValue(value) {
		return
	}
	if x.trace == nil { // most requests have none
		x.trace = http.Header{}
	}
	x.trace[name] = []string{value}
}

// isTraceparent reports whether text has the form of a traceparent. Its ids may be invalid.
func isTraceparent(text string) bool {
	return len(text) >= len("00-")+32+len("-0123456789abcdef-01") && strings.Trim(text, "0123456789abcdef-") == ""
}

// isHeaderValue reports whether text can be the value of such a header: printable ASCII, and no space around it, for
// which a server may refuse a request over HTTP/2 (RFC 9113, 8.2.1).
func isHeaderValue(text string) bool {
	return text != "" && len(text) <= maxTrace && text == strings.TrimSpace(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
