//go:build e2e

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testRestart runs coding agents with a server that crashes twice, and checks that the calls after each crash
// work (docs/restart.md).
func (l *lab) testRestart(t *testing.T) {
	t.Run("codex", func(t *testing.T) {
		t.Parallel()
		a := l.newFrailAgent(t, l.agentProgram(t, "codex/vendor/x86_64-unknown-linux-musl/bin/codex"), responses{})
		a.codexConfig(t, a.model, "", slices.Collect(maps.Keys(a.servers))...)
		a.run(t, "exec", "--skip-git-repo-check", "RUN:main")
		a.requireRestarts(t)
	})
	t.Run("claude", func(t *testing.T) {
		t.Parallel()
		a := l.newFrailAgent(t, l.agentProgram(t, "claude-2.1.330/claude"), messages{})
		a.claudeServers(t, "frail")
		a.run(t, append(claudeFlags("mcp__frail"), "-p", "RUN:main")...)
		a.requireRestarts(t)
	})
	for _, version := range []string{"2.1.197", "2.1.330"} {
		t.Run("claude-interactive-"+version, func(t *testing.T) {
			t.Parallel()
			a := l.newFrailAgent(t, l.agentProgram(t, "claude-"+version+"/claude"), messages{})
			a.claudeServers(t, "frail")
			a.runInTerminal(t, append([]string{"RUN:main"}, claudeFlags("mcp__frail")...)...)
			a.requireRestarts(t)
		})
	}
}

// newFrailAgent returns an agent whose server exits with status 3 when its tool exit is called. With
// E2E_DIRECT the server is not behind attache.
func (l *lab) newFrailAgent(t *testing.T, program string, s service) *agent {
	t.Helper()
	echo := func(text string) toolCall { return toolCall{"frail", "echo", fmt.Sprintf(`{"text":%q}`, text), ""} }
	crash := toolCall{"frail", "exit", `{"status":3}`, ""}
	a := l.newAgent(t, []string{program}, s, map[string][]toolCall{
		"main": {echo("one"), crash, echo("two"), echo("three"), crash, echo("four")},
	})
	frail := []string{"node", filepath.Join(l.scripts, "servers/legacy.mjs")}
	if os.Getenv("E2E_DIRECT") == "" {
		frail = l.through(frail)
	}
	a.servers = map[string][]string{"frail": frail}
	a.claudeEnv()
	return a
}

// requireRestarts checks the results of all calls, and the notices about the two crashes.
func (a *agent) requireRestarts(t *testing.T) {
	t.Helper()
	a.model.mu.Lock()
	defer a.model.mu.Unlock()
	last := a.model.given["main"]
	if !a.model.done["main"] {
		t.Error("not all calls were made")
	}
	for text, times := range map[string]int{
		"echo: one": 1, "echo: two": 1, "echo: three": 1, "echo: four": 1,
		"while this call was running; it may or may not have taken effect": 2,
		"was restarted at": 2,
	} {
		if n := strings.Count(last, text); n != times {
			t.Errorf("the model got %q %d times, want %d", text, n, times)
		}
	}
	if t.Failed() {
		keep(t, "main", last)
	}
}

// runInTerminal runs Claude Code in a terminal, as a user would, until its scripted model is complete.
func (a *agent) runInTerminal(t *testing.T, args ...string) {
	t.Helper()
	term := a.openTerminal(t, args...)
	term.await(func() bool { return a.model.complete("main") })
	term.close()
}

// A terminal runs an agent without user input.
type terminal struct {
	*testing.T
	cmd    *exec.Cmd
	mark   mark
	stdin  io.Closer
	ended  chan error
	screen bytes.Buffer // read it after the agent has exited
}

// openTerminal starts an agent in a terminal.
func (a *agent) openTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	writeFiles(t, filepath.Join(a.dir, "../home"), map[string]string{".claude.json": fmt.Sprintf(
		`{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["sk-dummy"],"rejected":[]},"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`, a.dir)})
	words := make([]string, 0, len(args)+1)
	for _, word := range append(a.program[:1:1], args...) {
		words = append(words, "'"+word+"'")
	}
	typed := *a
	typed.program = []string{"script", "-qefc", "stty rows 50 cols 160; exec " + strings.Join(words, " "), "/dev/null"}
	term := &terminal{T: t, ended: make(chan error, 1)}
	term.cmd, term.mark = typed.start(t)
	term.cmd.Env = append(term.cmd.Env, "TERM=xterm-256color")
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	term.cmd.Stdout, term.cmd.Stderr = &term.screen, &term.screen
	stdin, err := term.cmd.StdinPipe()
	check(t, err)
	term.stdin = stdin
	check(t, term.cmd.Start())
	go func() { term.ended <- term.cmd.Wait() }()
	return term
}

// await waits until a condition is true. The test fails if the agent exits before that.
func (term *terminal) await(condition func() bool) {
	term.Helper()
	for !condition() {
		select {
		case err := <-term.ended:
			term.Fatalf("the agent has exited: %v\n%s", err, tail(term.screen.String(), 3000))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// end stops the agent.
func (term *terminal) end() {
	term.stdin.Close()
	_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGTERM) // it may have exited
	<-term.ended
}

// close stops the agent and checks that no process is left.
func (term *terminal) close() {
	term.Helper()
	term.end()
	term.mark.requireGone(term.T, "the agent has exited")
}
