package middleware

import "context"

// A Trace names the span that a call is, or is part of, in the form in which
// W3C Trace Context writes it: lower-case hexadecimal. The zero Trace is that of
// a call of which no trace is known.
type Trace struct {
	// TraceID has 32 digits, SpanID 16.
	TraceID, SpanID string
}

// TraceKey is the key under which the layer trace attaches the [Trace] of a call
// for the layers further in. See [Call.Trace].
type TraceKey struct{}

// Trace returns the trace of the call: the span that attache made, or else the one that the
// client named in _meta. Log lines and audit records of the call have it.
func (c *Call) Trace() Trace {
	t, _ := c.Value(TraceKey{}).(Trace)
	return t
}

// LogContext returns a context for log lines of code that has the call but not the ctx of its
// handler or hook. A slog.Handler finds the trace in either.
func (c *Call) LogContext() context.Context {
	return &Context{Context: context.Background(), Call: c}
}
