package trace

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// traceparentLen is the length of a traceparent of version 00 of W3C Trace Context: version, trace
	// id, span id and flags in lower-case hexadecimal, 00-<32>-<16>-<2>.
	//
	// https://www.w3.org/TR/trace-context-2/#traceparent-header
	traceparentLen = 55
	// knownFlags are the flags that are propagated. Unknown flags must not be.
	knownFlags = oteltrace.FlagsSampled | oteltrace.FlagsRandom
)

// parse returns the span in a traceparent, or an invalid one if the text is not valid. For a higher
// version it reads the members of version 00, as the recommendation requires.
func parse(text string) (span oteltrace.SpanContext) {
	if len(text) < traceparentLen || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return span
	}
	version, okVersion := hexByte(text[:2])
	flags, okFlags := hexByte(text[53:traceparentLen])
	if !okVersion || version == 0xff || !okFlags {
		return span
	}
	if len(text) > traceparentLen && (version == 0 || text[traceparentLen] != '-') {
		return span
	}
	trace, errTrace := oteltrace.TraceIDFromHex(text[3:35])
	id, errID := oteltrace.SpanIDFromHex(text[36:52])
	if errTrace != nil || errID != nil {
		return span
	}
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: trace, SpanID: id, TraceFlags: oteltrace.TraceFlags(flags) & knownFlags})
}

// hexByte returns the byte that two lower-case hexadecimal digits stand for.
func hexByte(digits string) (b byte, ok bool) {
	n, err := strconv.ParseUint(digits, 16, 8)
	return byte(n), err == nil && digits == strings.ToLower(digits)
}

// format returns the traceparent of a span, in version 00, or "" if the span is invalid.
func format(s oteltrace.SpanContext) string {
	if !s.IsValid() {
		return ""
	}
	trace, span, flags := s.TraceID(), s.SpanID(), s.TraceFlags()&knownFlags
	b := append(make([]byte, 0, traceparentLen), "00-"...)
	b = append(hex.AppendEncode(b, trace[:]), '-')
	b = append(hex.AppendEncode(b, span[:]), '-', '0', '0'+byte(flags))
	return string(b)
}

// idsOf returns the ids in a valid traceparent for other layers; none for "".
func idsOf(traceparent string) middleware.Trace {
	if traceparent == "" {
		return middleware.Trace{}
	}
	return middleware.Trace{TraceID: traceparent[3:35], SpanID: traceparent[36:52]}
}

// newSpan returns a new span of the parent's trace, with the parent's decision about sampling. If the
// parent is invalid, it begins a new trace, which is marked as sampled because servers that follow their
// caller's decision would otherwise record nothing.
func newSpan(parent oteltrace.SpanContext, newID func(id []byte)) oteltrace.SpanContext {
	if !parent.IsValid() {
		var trace oteltrace.TraceID
		newID(trace[:])
		parent = oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: trace, TraceFlags: knownFlags})
	}
	var span oteltrace.SpanID
	newID(span[:])
	return parent.WithSpanID(span)
}

func randomID(id []byte) { fillID(id, rand.Uint64) }

// fillID makes an id of at most 16 bytes from the numbers of next. It is never all zero. Ids must be
// distinct, but need not be secret.
func fillID(id []byte, next func() uint64) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:8], max(next(), 1))
	binary.NativeEndian.PutUint64(b[8:], next())
	copy(id, b[:])
}

// The members of _meta, without a prefix as in SEP-414.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
)

type clientTrace struct {
	parent  oteltrace.SpanContext // invalid if there is no valid one
	text    string                // the traceparent in the request, until that is edited
	present bool                  // whether there is a traceparent, valid or not
	state   wire.Value
}

// readTrace returns the trace context in a request's _meta.
func readTrace(meta wire.Value) clientTrace {
	value := meta.Get(parentKey)
	if !value.Exists() {
		return clientTrace{}
	}
	text := value.View()
	return clientTrace{parse(text), text, true, meta.Get(stateKey)}
}

// why describes the new span of a request.
func (t clientTrace) why() string {
	switch {
	case t.parent.IsValid():
		return "a span of the client's trace"
	case t.present:
		return "a new trace, because the client's traceparent is not valid"
	}
	return "a new trace, because the client named none"
}

// remote returns a context with the client's span as the parent.
func (t clientTrace) remote() context.Context {
	if !t.parent.IsValid() {
		return context.Background()
	}
	state, _ := oteltrace.ParseTraceState(t.state.Text()) // an invalid one counts as none
	return oteltrace.ContextWithRemoteSpanContext(context.Background(), t.parent.WithTraceState(state))
}
