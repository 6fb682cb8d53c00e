package logging

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/record"
)

// A redactor is a handler that removes secrets and escapes control characters. Peers choose names,
// ids and paths: a client may use an API key as the id of a thread, and a terminal executes control
// sequences. It adds the trace id to a record about a call, if the id is known.
type redactor struct {
	slog.Handler
	secrets   *secrets
	unescaped rawCharacters
	see       func(slog.Record) // gets each record; nil without Tee
}

// rawCharacters report the characters that must not be shown but that a handler does not escape, in
// a message and in a value.
type rawCharacters struct{ message, value func(rune) bool }

// The text handler quotes values, but writes an escape character, which begins a colour, unquoted.
// The JSON handler escapes only the characters that JSON requires.
var (
	textUnescaped = rawCharacters{unprintable, func(c rune) bool { return c == '\x1b' }}
	jsonUnescaped = rawCharacters{unprintableWide, unprintableWide}
)

func unprintable(c rune) bool { return !unicode.IsPrint(c) }

func unprintableWide(c rune) bool { return c >= 0x7f && !unicode.IsPrint(c) }

// escaped returns text with the characters for which isRaw is true in Go's notation. The text
// handler turns \x1b into an escape character, so it is written as \u001b, even if a peer wrote it.
func escaped(text string, isRaw func(rune) bool) string {
	if strings.ContainsFunc(text, isRaw) {
		var b strings.Builder
		for _, c := range text {
			if !isRaw(c) {
				b.WriteRune(c)
				continue
			}
			q := strconv.QuoteRune(c)
			b.WriteString(q[1 : len(q)-1])
		}
		text = b.String()
	}
	return strings.ReplaceAll(text, `\x1b`, `\u001b`)
}

// secrets removes secrets from texts: values that look like one, and known values.
type secrets struct {
	p     cli.Process
	scrub atomic.Pointer[func() *record.Scrubber]
}

func newSecrets(p cli.Process, s *config.Settings) *secrets {
	k := &secrets{p: p}
	k.set(s, nil)
	return k
}

// set sets the known values to these and those of s. They are collected when the first line is
// logged, because most sessions log none.
func (k *secrets) set(s *config.Settings, values []string) {
	scrub := sync.OnceValue(func() *record.Scrubber {
		all := config.Secrets(k.p, s, values)
		all.Home, all.Host, all.Prose = "", "", true // the log shows the real paths of files
		return record.NewScrubber(all)
	})
	k.scrub.Store(&scrub)
}

func (k *secrets) without(text string) string {
	return string((*k.scrub.Load())().Line([]byte(text)))
}

// Redact makes log hide the secrets of s and these values.
func Redact(log *slog.Logger, s *config.Settings, values []string) {
	if h, ok := log.Handler().(*redactor); ok {
		h.secrets.set(s, values)
	}
}

// Hide returns a function that returns a text without the secrets that log hides.
func Hide(log *slog.Logger) func(text string) string {
	return func(text string) string {
		if h, ok := log.Handler().(*redactor); ok {
			return h.secrets.without(text)
		}
		return text
	}
}

// ForServer returns a logger for one of several servers, whose lines have the server's name. It has
// its own secrets, which [Redact] sets. The function of [Tee] sees the name in front of the message.
func ForServer(log *slog.Logger, name string) *slog.Logger {
	if h, ok := log.Handler().(*redactor); ok {
		own := &secrets{p: h.secrets.p}
		own.scrub.Store(h.secrets.scrub.Load())
		see := h.see
		if see != nil {
			see = func(r slog.Record) {
				r.Message = name + ": " + r.Message
				h.see(r)
			}
		}
		log = slog.New(&redactor{h.Handler, own, h.unescaped, see})
	}
	return log.With("server", name)
}

// Handle implements slog.Handler.
func (h *redactor) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, escaped(h.secrets.without(r.Message), h.unescaped.message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	if h.see != nil {
		h.see(out)
	}
	if call := middleware.CallFrom(ctx); call != nil { // layers log with the context of their call
		if id := call.Trace().TraceID; id != "" {
			out.AddAttrs(slog.String("trace_id", id))
		}
	}
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h *redactor) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &redactor{h.Handler.WithAttrs(h.attrs(attrs)), h.secrets, h.unescaped, h.see}
}

// WithGroup implements slog.Handler.
func (h *redactor) WithGroup(name string) slog.Handler {
	return &redactor{h.Handler.WithGroup(name), h.secrets, h.unescaped, h.see}
}

func (h *redactor) attrs(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return out
}

// attr returns a without secrets in its value. Its key is chosen by attache.
func (h *redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.shown(v.String()))
	case slog.KindAny: // such as an error
		if text := fmt.Sprint(v.Any()); h.shown(text) != text {
			v = slog.StringValue(h.shown(text))
		}
	case slog.KindGroup:
		v = slog.GroupValue(h.attrs(v.Group())...)
	}
	return slog.Attr{Key: a.Key, Value: v}
}

func (h *redactor) shown(value string) string {
	return escaped(h.secrets.without(value), h.unescaped.value)
}
