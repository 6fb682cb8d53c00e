package assembly

import (
	"log/slog"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// rehearsed returns the log of the layers that a dry run does not let act.
func rehearsed(s *config.Settings, log *slog.Logger) *slog.Logger {
	if s.DryRun {
		return dryrun.Mark(log)
	}
	return log
}

// rehearse puts a dry run in the place of the layers behind capture. Those up to
// capture work as ever: they look on, and capture cuts out credentials, which no
// server may see.
func (l *Layers) rehearse(log *slog.Logger) {
	at := 1 + slices.IndexFunc(l.List, func(m middleware.Layer) bool { return m.Name == "capture" })
	inner := slices.Clone(l.List[at:])
	if len(inner) == 0 {
		return
	}
	l.List = append(l.List[:at], dryrun.Layer(dryrun.Options{Layers: inner, Show: l.shown(), Log: log}))
}

// shown returns a function that tells of a member's value what a person may see:
// the beginning, without secrets.
func (l *Layers) shown() func(path []string, raw []byte) string {
	scrub := l.scrubbed()
	return func(path []string, raw []byte) string {
		text := string(scrub(path, raw))
		if len(text) <= cli.MaxShown {
			return text
		}
		end := cli.MaxShown
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		return text[:end] + "…"
	}
}

// scrubbed returns a function that takes the secrets in use, and what looks like
// one, out of a member's value. It may be had before all secrets are known.
func (l *Layers) scrubbed() func(path []string, raw []byte) []byte {
	scrub := sync.OnceValue(func() *record.Scrubber { return record.NewScrubber(record.Secrets{Values: l.Secrets}) })
	return func(path []string, raw []byte) []byte { return ScrubMember(scrub(), path, raw) }
}

// ScrubMember returns the raw JSON of the member at path without secrets, of which
// the member's name may be the only sign.
func ScrubMember(scrub *record.Scrubber, path []string, raw []byte) []byte {
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
