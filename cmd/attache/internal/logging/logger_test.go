package logging

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// The logger writes only to its writer, and not directly to stderr, which may block.
func TestLoggerWritesToItsWriter(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var direct, sink bytes.Buffer
		s := &config.Settings{}
		s.Log.Format, s.Log.Level = format, "info"
		New(cli.Process{Stderr: &direct}, s, &sink).Warn("told")
		if direct.Len() > 0 || !strings.Contains(sink.String(), "told") {
			t.Errorf("%s: stderr got %q, the sink %q", format, direct.String(), sink.String())
		}
	}
}

// Text chosen by a peer may be in messages, attributes and errors, and contain secrets and control
// characters, which a terminal executes.
func TestLogHidesSecrets(t *testing.T) {
	const key, odd = "shop_k1_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "a\x1b[2Jb\nc\u009bd\\x1b[2J"
	s := config.DefaultSettings("")
	s.Identity.KeyPrefix = "shop"
	for _, test := range []struct {
		name    string
		handler func(io.Writer) slog.Handler
		raw     rawCharacters
	}{
		{"text", func(w io.Writer) slog.Handler { return textHandler(w, slog.LevelInfo, false) }, textUnescaped},
		{"colour", func(w io.Writer) slog.Handler { return textHandler(w, slog.LevelInfo, true) }, textUnescaped},
		{"json", func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }, jsonUnescaped},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(&redactor{Handler: test.handler(&out), secrets: newSecrets(cli.Process{}, s), unescaped: test.raw})
			log.With("with", key+odd).WithGroup("g").Warn("message "+key+odd, "value", odd+key, "err", errors.New(key+odd),
				"any", []string{key}, slog.Group("in", "group", key), "n", 7, "lazy", lazyValue(key+odd))
			got := colourCodes.ReplaceAllString(out.String(), "")
			if strings.Contains(got, key) || strings.ContainsAny(strings.TrimSuffix(got, "\n"), "\x1b\n\u009b") {
				t.Errorf("the log has %q", got)
			}
			for _, want := range []string{"message ", "with", "value", "err", "any", "group", "lazy", "7", "atk_scrubbed"} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
		})
	}
}

// colours are the escape sequences that the log itself writes.
var colourCodes = regexp.MustCompile("\x1b\\[[0-9;]*m")

type lazyValue string

func (l lazyValue) LogValue() slog.Value { return slog.StringValue(string(l)) }
