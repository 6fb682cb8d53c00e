package otlp

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// NewSpanExporter returns an exporter for the SDK's batch processor. It returns an error if
// the endpoint is invalid.
func NewSpanExporter(o Options) (sdktrace.SpanExporter, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return spanExporter{c}, nil
}

type spanExporter struct{ *client }

// ExportSpans always returns nil, because the SDK would pass an error to a global handler.
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) > 0 {
		e.send(ctx, appendTraces(nil, spans))
	}
	return nil
}

// appendTraces appends an ExportTraceServiceRequest. All spans have the same provider, and
// so the same resource.
func appendTraces(b []byte, spans []sdktrace.ReadOnlySpan) []byte {
	return message(b, 1, func(b []byte) []byte { // ResourceSpans
		b = resourceField(b, 1, spans[0].Resource())
		for len(spans) > 0 {
			n := 1
			for n < len(spans) && spans[n].InstrumentationScope() == spans[0].InstrumentationScope() {
				n++
			}
			b = message(b, 2, func(b []byte) []byte { return appendScopeSpans(b, spans[:n]) })
			spans = spans[n:]
		}
		return b
	})
}

func appendScopeSpans(b []byte, spans []sdktrace.ReadOnlySpan) []byte {
	scope := spans[0].InstrumentationScope()
	b = scopeField(b, 1, scope)
	for _, s := range spans {
		b = message(b, 2, func(b []byte) []byte { return appendSpan(b, s) })
	}
	return text(b, 3, scope.SchemaURL)
}

func appendSpan(b []byte, s sdktrace.ReadOnlySpan) []byte {
	c := s.SpanContext()
	traceID, spanID := c.TraceID(), c.SpanID()
	b = raw(b, 1, traceID[:])
	b = raw(b, 2, spanID[:])
	b = text(b, 3, c.TraceState().String())
	if parent := s.Parent().SpanID(); parent.IsValid() {
		b = raw(b, 4, parent[:])
	}
	b = text(b, 5, s.Name())
	b = number(b, 6, uint64(s.SpanKind())) // the SDK's numbers are OTLP's
	b = nanos(b, 7, s.StartTime())
	b = nanos(b, 8, s.EndTime())
	b = attributes(b, 9, s.Attributes())
	b = number(b, 10, uint64(s.DroppedAttributes()))
	for _, l := range s.Links() {
		b = message(b, 13, func(b []byte) []byte { return appendLink(b, l) })
	}
	b = message(b, 15, func(b []byte) []byte {
		return number(text(b, 2, s.Status().Description), 3, statusCode(s.Status().Code))
	})
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flags(c, s.Parent().IsRemote()))
}

func appendLink(b []byte, l sdktrace.Link) []byte {
	c := l.SpanContext
	traceID, spanID := c.TraceID(), c.SpanID()
	b = text(raw(raw(b, 1, traceID[:]), 2, spanID[:]), 3, c.TraceState().String())
	b = attributes(b, 4, l.Attributes)
	return protowire.AppendFixed32(protowire.AppendTag(b, 6, protowire.Fixed32Type), flags(c, c.IsRemote()))
}

// statusCode returns OTLP's number, which differs from the SDK's.
func statusCode(c codes.Code) uint64 {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

// flags returns the flags of a span or a link, with one that tells whether the parent or the linked
// span is in another process (SpanFlags in trace.proto).
func flags(c trace.SpanContext, remote bool) uint32 {
	const isKnown, isRemote = 0x100, 0x200
	all := uint32(c.TraceFlags()) | isKnown
	if remote {
		all |= isRemote
	}
	return all
}
