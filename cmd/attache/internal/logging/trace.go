package logging

import (
	"context"
	"log/slog"

	"github.com/attache-mcp/attache/middleware"
)

// A hook is a handler that passes each record to a function and logs the record that it returns.
type hook struct {
	slog.Handler
	look func(context.Context, slog.Record) slog.Record
}

// Handle implements [slog.Handler].
func (h hook) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(ctx, h.look(ctx, r))
}

// WithAttrs implements [slog.Handler].
func (h hook) WithAttrs(attrs []slog.Attr) slog.Handler {
	return hook{h.Handler.WithAttrs(attrs), h.look}
}

// WithGroup implements [slog.Handler].
func (h hook) WithGroup(name string) slog.Handler { return hook{h.Handler.WithGroup(name), h.look} }

// withTrace adds the trace id to a record about a call, if the id is known. The call is in the
// context with which layers log.
func withTrace(ctx context.Context, r slog.Record) slog.Record {
	if call := middleware.CallFrom(ctx); call != nil {
		if id := call.Trace().TraceID; id != "" {
			r = r.Clone() // copies of a record share memory
			r.AddAttrs(slog.String("trace_id", id))
		}
	}
	return r
}
