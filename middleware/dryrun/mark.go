package dryrun

import (
	"context"
	"log/slog"
)

// Mark returns a logger that begins each message with "dry run: ". Without it, a layer would
// log "a call was refused" although none was.
func Mark(log *slog.Logger) *slog.Logger { return slog.New(markHandler{log.Handler()}) }

type markHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h markHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Message = "dry run: " + r.Message
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h markHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return markHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h markHandler) WithGroup(name string) slog.Handler {
	return markHandler{h.Handler.WithGroup(name)}
}
