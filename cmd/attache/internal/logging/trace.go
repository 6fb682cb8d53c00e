package logging

import (
	"context"
	"log/slog"

	"github.com/attache-mcp/attache/middleware"
)

// A hook is a handler that has a function look at each record, and return what is logged.
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

// withTrace gives a line about a call the id of its trace, if one is known. Layers log with the
// context of the frame they handle, and need not know of it.
func withTrace(ctx context.Context, r slog.Record) slog.Record {
	if call := middleware.CallFrom(ctx); call != nil {
		if id := call.Trace().TraceID; id != "" {
			r = r.Clone() // a record must not be changed, as its copies share room
			r.AddAttrs(slog.String("trace_id", id))
		}
	}
	return r
}
