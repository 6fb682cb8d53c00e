package logging

import (
	"context"
	"log/slog"

	"github.com/attache-mcp/attache/middleware"
)

// traceHandler gives each line about a call the id of its trace, if one is known. Layers
// log with the context of the frame they handle, and need not know of it.
type traceHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if call := middleware.CallFrom(ctx); call != nil {
		if id := call.Trace().TraceID; id != "" {
			r = r.Clone() // a record must not be changed, as its copies share room
			r.AddAttrs(slog.String("trace_id", id))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
