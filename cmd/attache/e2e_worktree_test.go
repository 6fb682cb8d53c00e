//go:build e2e

package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testWorktree lets Claude Code enter a worktree and leave it, over stdio and behind a front. An argument with
// the workspace must be filled with the directory in which Claude Code is.
func (l *lab) testWorktree(t *testing.T) {
	for _, version := range []string{"2.1.197", "2.1.330"} {
		t.Run("stdio-"+version, func(t *testing.T) {
			t.Parallel()
			a := l.newWorktreeAgent(t, version)
			a.claudeServers(t, "all")
			a.requireMoves(t)
		})
		t.Run("http-"+version, func(t *testing.T) {
			t.Parallel()
			a := l.newWorktreeAgent(t, version)
			f := l.startFront(t, l.everything().command, "--config", filepath.Join(a.dir, "../attache.yaml"))
			writeFiles(t, a.dir, map[string]string{"mcp.json": `{"mcpServers":{"all":{"type":"http","url":"` + f.url + `"}}}`})
			a.requireMoves(t)
			f.end(t)
		})
	}
}

// newWorktreeAgent returns an agent that calls echo in a worktree, and again after it has left the worktree. It
// repeats a call that was filled with another directory, because Claude Code can be late on a busy machine.
func (l *lab) newWorktreeAgent(t *testing.T, version string) *agent {
	a := l.newAgent(t, []string{l.agentProgram(t, "claude-"+version+"/claude")}, messages{}, map[string][]toolCall{})
	a.model.scripts["main"] = []toolCall{
		{"", "EnterWorktree", `{"name":"fix"}`, ""},
		{"all", "echo", `{}`, a.echoed("/.claude/worktrees/fix")},
		{"", "ExitWorktree", `{"action":"keep"}`, ""},
		{"all", "echo", `{}`, a.echoed("")},
	}
	a.claudeEnv()
	writeFiles(t, filepath.Dir(a.dir), map[string]string{"attache.yaml": "arguments: [{tools: [echo], argument: message, value: session.workspace.path}]\n"})
	commit := exec.Command("git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.invalid", "commit", "-q", "--allow-empty", "-m", "first")
	commit.Dir = a.dir
	if msg, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("git commit: %v\n%s", err, msg)
	}
	return a
}

// echoed returns the end of a result of echo that was filled with a directory in the project.
func (a *agent) echoed(dir string) string { return "Echo: " + a.dir + dir + `"` }

// requireMoves runs the agent to the end of its script, and checks that its last call has the project.
func (a *agent) requireMoves(t *testing.T) {
	t.Helper()
	a.run(t, append(claudeFlags("mcp__all,EnterWorktree,ExitWorktree"), "-p", "RUN:main")...)
	a.requireCalled(t, "main")
	last := a.model.last("main")
	if strings.LastIndex(last, a.echoed("")) < strings.LastIndex(last, a.echoed("/.claude/worktrees/fix")) {
		t.Error("after the worktree a call was filled with it")
		keep(t, "main", last)
	}
}
