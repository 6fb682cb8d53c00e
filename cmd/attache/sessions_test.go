package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
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
		s := attachetest.Load(t, p)
		return assemble(t, s, assembly.Options{Process: p}, assembly.ConnOptions{}).Relay()
	})
}
