// Package logging makes the logger of a run. It never blocks, and removes secrets and
// control characters from its lines.
package logging

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

// New returns the logger of this run. It writes to w, which is the process's stderr or a
// [Sink] in front of it.
func New(p cli.Process, s *config.Settings, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.Log.Level)) // cannot fail: the settings were checked
	handler := func(w io.Writer) slog.Handler { return textHandler(w, level, term.HasColour(p.Getenv, p.Stderr)) }
	unescaped := textUnescaped
	if s.Log.Format == "json" {
		handler = func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}) }
		unescaped = jsonUnescaped
	}
	if sink, ok := w.(*Sink); ok {
		sink.dropped = func(lines int) {
			slog.New(handler(sink.w)).Log(context.Background(), max(level, slog.LevelWarn), "log lines were dropped, as stderr did not take them in time", "lines", lines)
		}
	}
	return slog.New(&redactor{Handler: handler(w), secrets: newSecrets(p, s), unescaped: unescaped})
}

// Tee makes log call see with each record, without secrets. Call it before log is used.
func Tee(log *slog.Logger, see func(slog.Record)) {
	if h, ok := log.Handler().(*redactor); ok {
		h.see = see
	}
}

// textHandler returns the handler for lines that people read.
func textHandler(w io.Writer, level slog.Level, colours bool) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !colours})
}
