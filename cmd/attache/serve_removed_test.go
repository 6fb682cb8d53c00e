package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A server is served until attache ends. So a configuration without its entry is not applied to it:
// its clients would call it without the rules of the entry.
func TestRemovedServerKeepsItsRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	const git = "  git: {server: {command: [cat]}, access: {rules: [{tools: [git_push], deny: true}]}}\n"
	const shop = "  shop: {server: {command: [cat]}}\n"
	attachetest.WriteFile(t, file, "servers:\n"+git+shop)
	c := &program{Process: cli.Process{Env: []string{"HOME=" + t.TempDir()}}}
	cmd := &cobra.Command{}
	flags := config.AddFlags(cmd)
	check(t, cmd.ParseFlags([]string{"--config", file}))
	s, err := config.Load(c.Process, flags, nil)
	check(t, err)
	servers, err := c.servedServers(s, flags)
	if err != nil || len(servers) != 2 {
		t.Fatal(servers, err)
	}

	attachetest.WriteFile(t, file, "servers:\n"+shop)
	want := file + ": the entry servers.git is gone"
	if s, err := servers[0].Load(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, %v; want %s", s, err, want)
	}
	if _, err := servers[1].Load(); err != nil {
		t.Error(err)
	}
}
