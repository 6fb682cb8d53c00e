package main

import (
	"log/slog"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// rehearsed returns the log of the layers that a dry run does not let act.
func rehearsed(s *Settings, log *slog.Logger) *slog.Logger {
	if s.DryRun {
		return dryrun.Mark(log)
	}
	return log
}

// rehearse puts a dry run in the place of the layers behind capture. Those up to
// capture work as ever: they look on, and capture cuts out credentials, which no
// server may see.
func (l *layers) rehearse(log *slog.Logger) {
	at := 1 + slices.IndexFunc(l.list, func(m middleware.Layer) bool { return m.Name == "capture" })
	inner := slices.Clone(l.list[at:])
	if len(inner) == 0 {
		return
	}
	l.list = append(l.list[:at], dryrun.Layer(dryrun.Options{Layers: inner, Show: l.shown(), Log: log}))
}

// maxShown is how much of a value is told, in bytes.
const maxShown = 200

// shown returns a function that tells of a member's value what a person may see:
// the beginning, without secrets.
func (l *layers) shown() func(path []string, raw []byte) string {
	scrub := l.scrubbed()
	return func(path []string, raw []byte) string {
		text := string(scrub(path, raw))
		if len(text) <= maxShown {
			return text
		}
		end := maxShown
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		return text[:end] + "…"
	}
}

// scrubbed returns a function that takes the secrets in use, and what looks like
// one, out of a member's value. It may be had before all secrets are known.
func (l *layers) scrubbed() func(path []string, raw []byte) []byte {
	scrub := sync.OnceValue(func() *record.Scrubber { return record.NewScrubber(record.Secrets{Values: l.secrets}) })
	return func(path []string, raw []byte) []byte { return scrubMember(scrub(), path, raw) }
}

// scrubMember returns the raw JSON of the member at path without secrets, of which
// the member's name may be the only sign.
func scrubMember(scrub *record.Scrubber, path []string, raw []byte) []byte {
	if len(path) == 0 {
		return scrub.Line(raw)
	}
	key := wire.Quote(path[len(path)-1])
	line := slices.Concat([]byte{'{'}, key, []byte{':'}, raw, []byte{'}'})
	for m := range (wire.Value{Raw: scrub.Line(line)}).Members() {
		return m.Value.Raw
	}
	return nil
}
