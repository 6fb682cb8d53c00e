package dryrun

import (
	"context"
	"log/slog"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// place spells a path the way people do: params of a call go without saying.
func place(path []string) string {
	if len(path) > 1 && path[0] == "params" {
		path = path[1:]
	}
	return cut(strings.Join(path, "."))
}

// answerText returns what an answer tells: the text of a tool's result, or the
// message of an error.
func answerText(m *wire.Message) string {
	if text := m.Get("error", "message").Text(); text != "" {
		return text
	}
	for block := range m.Get("result", "content").Elements() {
		return block.Get("text").Text()
	}
	return ""
}

// cut shortens a text that came over the wire for a log line.
func cut(text string) string {
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// Mark returns a logger whose lines say that they are of a dry run: a layer says
// "a call was refused" and does not know that none was.
func Mark(log *slog.Logger) *slog.Logger { return slog.New(marked{log.Handler()}) }

type marked struct{ slog.Handler }

// Handle implements slog.Handler.
func (h marked) Handle(ctx context.Context, r slog.Record) error {
	r.Message = "dry run: " + r.Message
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h marked) WithAttrs(attrs []slog.Attr) slog.Handler { return marked{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h marked) WithGroup(name string) slog.Handler { return marked{h.Handler.WithGroup(name)} }
