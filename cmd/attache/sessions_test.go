package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestSessions plays the recorded sessions of testdata/sessions, each with the configuration of the same name
// if there is one, and compares every byte. A new session needs no Go: testdata/README.md says how to record
// it.
func TestSessions(t *testing.T) {
	proxytest.ReplayWith(t, "../../testdata/sessions/*.jsonl", func(t testing.TB, file string) proxy.Options {
		p := cli.Process{Env: []string{"HOME=/home/user"}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
		rules := strings.TrimSuffix(file, filepath.Ext(file)) + ".yaml"
		if _, err := os.Stat(rules); err == nil {
			p.Env = append(p.Env, "ATTACHE_CONFIG="+rules)
		}
		s, err := config.Load(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		conn, err := assembly.Single(assembly.Options{Process: p, Log: log}, s, assembly.ConnOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return conn.Relay()
	})
}
