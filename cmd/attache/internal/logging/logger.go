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
	"github.com/attache-mcp/attache/middleware"
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
	return slog.New(&redactor{hook{handler(w), withTrace}, newSecrets(p, s), unescaped})
}

// Tee makes log call see with each record, without secrets. Call it before log is used.
func Tee(log *slog.Logger, see func(slog.Record)) {
	if h, ok := log.Handler().(*redactor); ok {
		h.Handler = hook{h.Handler, func(_ context.Context, r slog.Record) slog.Record {
			see(r)
			return r
		}}
	}
}

// textHandler returns the handler for lines that people read.
func textHandler(w io.Writer, level slog.Level, colours bool) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !colours})
}

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
