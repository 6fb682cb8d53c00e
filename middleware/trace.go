package middleware

import (
	"context"

	"github.com/attache-mcp/attache/internal/relayed"
)

// A Trace identifies the span of a call, in lower-case hexadecimal as in W3C Trace
// Context. The zero Trace means that the call has no known trace.
type Trace struct {
	// TraceID has 32 digits, SpanID 16.
	TraceID, SpanID string
}

// TraceKey is the key under which the layer trace attaches the [Trace] of a call.
type TraceKey struct{}

// Trace returns the trace of the call: the span that attache created, or else the one that the
// client named in _meta. Log lines and audit records of the call include it.
func (c *Call) Trace() Trace {
	t, _ := c.Value(TraceKey{}).(Trace)
	return t
}

// LogContext returns a context for log lines of code that has the call but not the ctx of its
// handler or hook. A slog.Handler finds the trace in either.
func (c *Call) LogContext() context.Context {
	return &relayed.Context{Context: context.Background(), Call: c.relayed()}
}
