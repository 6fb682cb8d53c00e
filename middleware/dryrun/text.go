package dryrun

import (
	"context"
	"log/slog"
	"strings"

	"github.com/attache-mcp/attache/middleware"
)

// pathText returns a path for people, without the params of a call.
func pathText(path []string) string {
	if len(path) > 1 && path[0] == "params" {
		path = path[1:]
	}
	return middleware.Clip(strings.Join(path, "."))
}

// Mark returns a logger that begins each message with "dry run: ". A layer logs "a call
// was refused" and does not know that none was.
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
