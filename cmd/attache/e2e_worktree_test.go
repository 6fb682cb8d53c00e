//go:build e2e

package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testWorktree lets Claude Code enter a worktree and leave it. An argument with the workspace must be filled
// with the directory in which Claude Code is at each call, over stdio and behind a front.
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

func (l *lab) newWorktreeAgent(t *testing.T, version string) *agent {
	echo := toolCall{"all", "echo", `{}`, ""}
	a := l.newAgent(t, []string{l.agentProgram(t, "claude-"+version+"/claude")}, messages{}, map[string][]toolCall{"main": {
		echo, {"", "EnterWorktree", `{"name":"fix"}`, ""}, echo, {"", "ExitWorktree", `{"action":"keep"}`, ""}, echo,
	}})
	a.claudeEnv()
	writeFiles(t, filepath.Dir(a.dir), map[string]string{"attache.yaml": "arguments: [{tools: [echo], argument: message, value: session.workspace.path}]\n"})
	commit := exec.Command("git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.invalid", "commit", "-q", "--allow-empty", "-m", "first")
	commit.Dir = a.dir
	if msg, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("git commit: %v\n%s", err, msg)
	}
	return a
}

// requireMoves runs the agent and checks the directory that each of its calls was filled with.
func (a *agent) requireMoves(t *testing.T) {
	t.Helper()
	a.run(t, append(claudeFlags("mcp__all,EnterWorktree,ExitWorktree"), "-p", "RUN:main")...)
	a.requireCalled(t, "main")
	last, dir := a.model.last("main"), "Echo: "+a.dir
	project, worktree := strings.Count(last, dir+`"`), strings.Count(last, dir+`/.claude/worktrees/fix"`)
	if project != 2 || worktree != 1 {
		t.Errorf("%d calls had the project and %d the worktree, want 2 and 1", project, worktree)
		keep(t, "main", last)
	}
}
