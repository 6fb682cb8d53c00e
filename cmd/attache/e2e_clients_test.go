//go:build e2e

package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// testServeClients connects popular programs to attache serve.
func (l *lab) testServeClients(t *testing.T) {
	t.Run("inspector", l.testServeInspector)
	t.Run("claude", l.testServeClaude)
	t.Run("cut", l.testServeCut)
}

// testServeCut cuts the connections of both TypeScript SDKs during a call, which must go on.
func (l *lab) testServeCut(t *testing.T) {
	t.Parallel()
	f := l.startFront(t, l.everything().command)
	cmd := exec.Command("node", filepath.Join(l.scripts, "cut.mjs"), f.url)
	cmd.Env = l.env(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	const want = "v1 Long running operation completed. Duration: 2 seconds, Steps: 4. 1 2 3 4\n" +
		"v2 Long running operation completed. Duration: 2 seconds, Steps: 4. 1 2 3 4\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %s%s", err, out, stderr.String())
	}
	f.end(t)
}

// testServeInspector checks that the inspector's command line prints the same output for attache serve as for
// the server itself.
func (l *lab) testServeInspector(t *testing.T) {
	t.Parallel()
	program := l.npm("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	requireInstalled(t, program, "the inspector is missing; run: npm --prefix testdata/e2e install --no-package-lock --ignore-scripts")
	f := l.startFront(t, []string{l.goserver})
	inspect := func(target string, args []string) string {
		cmd := exec.Command("node", append([]string{program, "--cli", target}, args...)...)
		cmd.Env = l.env(t, "HOME="+t.TempDir())
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return string(out)
	}
	var all sync.WaitGroup
	for _, args := range [][]string{
		{"--method", "tools/list"},
		{"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=ä <b>"},
		{"--method", "resources/read", "--uri", "fixture://item/1"},
	} {
		all.Go(func() {
			direct, served := inspect(l.goserver, args), inspect(f.url, args)
			if direct == "" || direct != served {
				t.Errorf("%v: directly\n%s\nover HTTP\n%s", args, direct, served)
			}
		})
	}
	all.Wait()
	f.end(t)
}

// testServeClaude uses attache serve from Claude Code, which must be briefed once.
func (l *lab) testServeClaude(t *testing.T) {
	t.Parallel()
	program := l.agentProgram(t, "claude-2.1.330/claude")
	call := toolCall{"all", "echo", `{"message":"hello"}`, ""}
	a := l.newAgent(t, []string{program}, messages{}, map[string][]toolCall{"main": {call, call}})
	f := l.startFront(t, l.everything().command, "--config", filepath.Join(filepath.Dir(a.dir), "attache.yaml"))
	a.claudeEnv()
	writeFiles(t, a.dir, map[string]string{"mcp.json": `{"mcpServers":{"all":{"type":"http","url":"` + f.url + `"}}}`})
	a.run(t, append([]string{"-p", "RUN:main"}, claudeFlags("mcp__all")...)...)
	a.requireBriefings(t, "main", 1, 1)
	f.end(t)
}
