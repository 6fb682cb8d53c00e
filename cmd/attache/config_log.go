package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// newLogger returns the logger of this run, which writes to w, the process's
// stderr or what leads there.
func newLogger(p process, s *Settings, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.Log.Level)) // one of four words, checked before
	k := newSecrets(p, s)
	if s.Log.Format == "json" {
		return slog.New(&discreet{traced{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})}, k, roughJSON})
	}
	return slog.New(&discreet{traced{textHandler(w, level, p.colours(p.Stderr))}, k, roughText})
}

// textHandler returns the handler of lines for people.
func textHandler(w io.Writer, level slog.Level, colours bool) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !colours})
}

// colours reports whether w is to be written in colour: a terminal of a person who
// did not ask to be spared (no-color.org).
func (p process) colours(w io.Writer) bool {
	if out, ok := w.(*printed); ok {
		w = out.to
	}
	f, ok := w.(*os.File)
	if !ok || p.getenv("NO_COLOR") != "" || p.getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && term.IsTerminal(int(f.Fd()))
}
