package main

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestPlay plays scripted sessions through the whole chain, built from a
// configuration as for a real run. A script says
//
//	layers chain=CONFIG,NAME=VALUE...
//
// where CONFIG.yaml stands beside it and the rest is the environment. A new
// script needs no Go.
func TestPlay(t *testing.T) {
	const dir = "testdata/play"
	chain := func(s *proxytest.Session, arg string) middleware.Layer {
		words := strings.Split(arg, ",")
		p := process{Env: words[1:], Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
		p.Env = append(p.Env, "ATTACHE_CONFIG="+filepath.Join(dir, words[0]+".yaml"))
		settings, err := loadSettings(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := buildLayers(p, settings, slog.New(notes{s}))
		if err != nil {
			t.Fatal(err)
		}
		return middleware.Layer{Name: "chain", Wrap: func(next middleware.Handler) middleware.Handler {
			return middleware.Chain(next, l.list...)
		}}
	}
	player := proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{"chain": chain}}
	player.Play(t, dir+"/*.txt")
}

// notes makes a note of every log message, for "note" in a script.
type notes struct{ s *proxytest.Session }

func (n notes) Enabled(context.Context, slog.Level) bool { return true }

func (n notes) Handle(_ context.Context, r slog.Record) error {
	n.s.Note("%s", r.Message)
	return nil
}

func (n notes) WithAttrs([]slog.Attr) slog.Handler { return n }
func (n notes) WithGroup(string) slog.Handler      { return n }
