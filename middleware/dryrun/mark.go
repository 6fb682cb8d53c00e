package dryrun

import (
	"context"
	"log/slog"

	"github.com/attache-mcp/attache/internal/relayed"
)

// Mark returns a logger that begins each message with "dry run: ". Without it, a layer would
// log "a call was refused" although none was. What a layer logs at info about a frame becomes
// debug, because the dry run logs the same at info, from the layer's notes.
func Mark(log *slog.Logger) *slog.Logger { return slog.New(markHandler{log.Handler()}) }

type markHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h markHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Message = "dry run: " + r.Message
	if r.Level == slog.LevelInfo && isShadow(relayed.From(ctx)) {
		if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// isShadow reports whether a call is that of a copy.
func isShadow(c *relayed.Call) bool {
	if c == nil {
		return false
	}
	_, ok := c.Relay().(*run)
	return ok
}

// WithAttrs implements slog.Handler.
func (h markHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return markHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h markHandler) WithGroup(name string) slog.Handler {
	return markHandler{h.Handler.WithGroup(name)}
}
