package main

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestPlay plays scripted sessions through the whole chain, built from a configuration as in a real run. A
// script begins with
//
//	layers chain=CONFIG,NAME=VALUE...
//
// where CONFIG.yaml is in the same directory and the rest is the environment. A new
// script needs no Go.
func TestPlay(t *testing.T) {
	dir := private(t, "testdata/play")
	chain := func(s *proxytest.Session, arg string) middleware.Layer { return chainOf(t, s, dir, arg) }
	player := proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{"chain": chain}}
	player.Play(t, dir+"/*.txt")
}

// chainOf returns the whole chain as one layer. arg is the name of a configuration in dir, and variables,
// separated by commas.
func chainOf(t *testing.T, s *proxytest.Session, dir, arg string) middleware.Layer {
	t.Helper()
	words := strings.Split(arg, ",")
	p := cli.Process{Env: words[1:], Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
	p.Env = append(p.Env, "ATTACHE_CONFIG="+filepath.Join(dir, words[0]+".yaml"))
	settings := attachetest.Load(t, p)
	return chainWith(t, s, p, settings)
}

// chainWith returns the chain of settings as one layer.
func chainWith(t *testing.T, s *proxytest.Session, p cli.Process, settings *config.Settings) middleware.Layer {
	t.Helper()
	log := slog.New(testkit.LogHandler(func(_ context.Context, r slog.Record) { s.Note("%s", r.Message) })) // for "note" in a script
	layers := assemble(t, settings, assembly.Options{Process: p, Log: log}, assembly.ConnOptions{}).Relay().Layers
	layer := middleware.Needs(layers...)
	layer.Name = "chain"
	layer.Wrap = func(next middleware.Handler) middleware.Handler { return middleware.Chain(next, layers...) }
	return layer
}

// assemble returns the connection of one session. Without a log, nothing is logged.
func assemble(t testing.TB, s *config.Settings, o assembly.Options, c assembly.ConnOptions) *assembly.Conn {
	t.Helper()
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	conn, err := assembly.Single(o, s, c)
	check(t, err)
	return conn
}

// private copies a directory to one whose files only the user can read, as key files require.
func private(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	check(t, os.CopyFS(to, os.DirFS(dir)))
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	check(t, err)
	return to
}
