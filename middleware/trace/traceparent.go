package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"

	"github.com/attache-mcp/attache/middleware"
)

// A traceparent is a valid value of the member traceparent, in the form of
// version 00 of W3C Trace Context: version, trace id, span id and flags in
// lower-case hexadecimal, 00-<32>-<16>-<2>. The empty traceparent means none.
//
// https://www.w3.org/TR/trace-context-2/#traceparent-header
type traceparent string

const (
	traceparentLen = 55

	sampled byte = 1 // the caller may have recorded the span
	random  byte = 2 // the trace id is random, so a sampler may use it
	// knownFlags are the flags that are propagated. Unknown flags must not be.
	knownFlags = sampled | random
)

func (t traceparent) traceID() string { return string(t[3:35]) }
func (t traceparent) spanID() string  { return string(t[36:52]) }

// flags returns the known flags.
func (t traceparent) flags() byte { return nibble(t[54]) & knownFlags }

// ids returns the ids for other layers. The strings share the bytes of t.
func (t traceparent) ids() middleware.Trace {
	if t == "" {
		return middleware.Trace{}
	}
	return middleware.Trace{TraceID: t.traceID(), SpanID: t.spanID()}
}

// parse returns text as a traceparent, and reports whether it is valid. For a higher
// version it reads the members of version 00, as the recommendation requires. It does not
// keep text.
func parse(text string) (traceparent, bool) {
	if len(text) < traceparentLen || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return "", false
	}
	version := text[:2]
	switch {
	case !isHex(version) || version == "ff":
		return "", false
	case version == "00" && len(text) > traceparentLen:
		return "", false
	case len(text) > traceparentLen && text[traceparentLen] != '-':
		return "", false
	}
	trace, span, flags := text[3:35], text[36:52], text[53:55]
	if !isHex(trace) || !isHex(span) || !isHex(flags) || isZero(trace) || isZero(span) {
		return "", false
	}
	return compose(trace, span, nibble(flags[1])), true
}

// compose writes a traceparent of version 00.
func compose(trace, span string, flags byte) traceparent {
	b := make([]byte, 0, traceparentLen)
	b = append(append(append(b, "00-"...), trace...), '-')
	b = append(append(b, span...), '-', '0', '0'+flags&knownFlags)
	return traceparent(b)
}

// newSpan returns a new span of t's trace, with t's decision about sampling. If t is empty, it
// begins a new trace, which is marked as sampled because servers that follow their caller's
// decision would otherwise record nothing.
func (t traceparent) newSpan(newID func(length int) string) traceparent {
	if t == "" {
		return compose(newID(16), newID(8), sampled|random)
	}
	return compose(t.traceID(), newID(8), t.flags())
}

func randomID(length int) string { return newID(length, rand.Uint64) }

// newID returns an id of n bytes from the numbers of next. It is never all zero. Ids
// must be distinct, but need not be secret.
func newID(n int, next func() uint64) string {
	var b [16]byte
	for {
		binary.NativeEndian.PutUint64(b[:8], next())
		binary.NativeEndian.PutUint64(b[8:], next())
		if id := hex.EncodeToString(b[:n]); !isZero(id) {
			return id
		}
	}
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func isZero(s string) bool { return strings.Trim(s, "0") == "" }

// nibble returns the value of a hexadecimal digit.
func nibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}
