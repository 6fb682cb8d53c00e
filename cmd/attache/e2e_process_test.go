//go:build e2e

package main_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// maxWait is how long a test waits for a result that is immediate on an idle machine. A slow and busy machine needs
// less, too.
const maxWait = 3 * time.Minute

// A mark is an environment variable that all processes of one run inherit. It identifies them, whatever their
// parent.
type mark string

func newMark() mark             { return mark(rand.Text()) }
func (m mark) variable() string { return "E2E_MARK=" + string(m) }
func (m mark) describe(pid int) string {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have exited
	return fmt.Sprintf("%d %s", pid, strings.ReplaceAll(string(cmdline), "\x00", " "))
}

// alive returns the running processes of the run. Zombies do not count, because orphans may not be reaped.
func (m mark) alive() []int {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		environ, err := os.ReadFile(filepath.Join(entry, "environ"))
		if err != nil || !bytes.Contains(environ, []byte(m.variable())) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(entry, "stat"))
		if err != nil {
			continue
		}
		if _, after, ok := strings.Cut(string(stat), ") "); !ok || after[0] == 'Z' || after[0] == 'X' {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(entry)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until all processes of the run have exited. After the limit it kills the remaining ones and
// returns their descriptions.
func (m mark) gone(limit time.Duration) []string {
	deadline := time.Now().Add(limit)
	for {
		pids := m.alive()
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			var left []string
			for _, pid := range pids {
				left = append(left, m.describe(pid))
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have exited meanwhile
			}
			return left
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// requireGone checks that all processes of the run exit.
func (m mark) requireGone(t *testing.T, after string) {
	t.Helper()
	if left := m.gone(maxWait); len(left) > 0 {
		t.Errorf("still running after %s:\n%s", after, strings.Join(left, "\n"))
	}
}

// testProcesses stops attache in every way in which a client does, and checks that no process is left.
// proxy/child tests the steps that stop a server.
func (l *lab) testProcesses(t *testing.T) {
	stubborn := filepath.Join(l.scripts, "servers/stubborn.mjs")
	for _, tree := range []struct {
		name    string
		command []string
	}{
		{"node", l.everything().command},
		{"npx", []string{"npx", "--no-install", "mcp-server-everything", "stdio"}},
		{"npx-git", []string{"npx", "--no-install", "git-mcp-server"}},
		{"stubborn", []string{"node", stubborn}},
		{"stubborn-grandchild", []string{"sh", "-c", `node "$1"; exit 3`, "sh", stubborn}},
		{"chain", l.through(l.through(l.everything().command))},
		{"stubborn-chain", l.through(l.through([]string{"node", stubborn}))},
	} {
		for _, end := range []struct {
			name   string
			signal syscall.Signal
		}{
			{"EOF", 0},
			{"SIGTERM", syscall.SIGTERM},
			{"SIGINT", syscall.SIGINT},
			{"SIGKILL", syscall.SIGKILL},
		} {
			t.Run(tree.name+"/"+end.name, func(t *testing.T) {
				t.Parallel()
				if l.standIn && (strings.HasPrefix(tree.name, "stubborn") || end.signal != 0) {
					t.Skip("needs attache")
				}
				s := l.start(t, l.through(tree.command))
				s.initialize(t)
				if n := len(s.mark.alive()); n < 2 {
					t.Fatalf("%d processes have the mark, want attache and its server", n)
				}
				began := time.Now()
				if end.signal == 0 {
					check(t, s.stdin.Close())
				} else if err := s.cmd.Process.Signal(end.signal); err != nil {
					t.Fatal(err)
				}
				if left := s.mark.gone(maxWait); len(left) > 0 {
					t.Errorf("still running after %s:\n%s\n--- stderr\n%s", end.name, strings.Join(left, "\n"), s.stderrTail())
				}
				t.Logf("gone after %v", time.Since(began).Round(time.Millisecond))
			})
		}
	}
}

// A startedCommand is a process whose stdin and stdout the test uses.
type startedCommand struct {
	mark   mark
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr string // a file, because a pipe would stay open until the whole tree has exited
}

func (l *lab) start(t *testing.T, command []string, more ...string) *startedCommand {
	t.Helper()
	s := &startedCommand{mark: newMark(), stderr: filepath.Join(t.TempDir(), "stderr")}
	stderr, err := os.Create(s.stderr)
	check(t, err)
	defer stderr.Close()
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Dir = l.scripts // where npx finds the local packages
	s.cmd.Env = l.env(t, append(more, s.mark.variable())...)
	s.cmd.Stderr = stderr
	stdin, err := s.cmd.StdinPipe()
	check(t, err)
	stdout, err := s.cmd.StdoutPipe()
	check(t, err)
	check(t, s.cmd.Start())
	s.stdin, s.stdout = stdin, bufio.NewReader(stdout)
	waited := make(chan struct{})
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-waited
		s.mark.gone(0)
	})
	go func() {
		defer close(waited)
		_, _ = s.cmd.Process.Wait() // reap it immediately, so that it counts as gone
	}()
	return s
}

func (s *startedCommand) stderrTail() string {
	b, _ := os.ReadFile(s.stderr) // only used in failure messages
	return tail(string(b), 2000)
}

// initialize sends initialize for a legacy session and reads up to the answer.
func (s *startedCommand) initialize(t *testing.T) {
	t.Helper()
	s.send(t, `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`)
	timer := time.AfterFunc(maxWait, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	for {
		line, err := s.stdout.ReadBytes('\n')
		if err != nil {
			t.Fatalf("no answer to initialize: %v\n--- stderr\n%s", err, s.stderrTail())
		}
		var answer struct{ ID any }
		if json.Unmarshal(line, &answer) == nil && answer.ID == "open" {
			return
		}
	}
}

// testDeath makes a server exit during a call: the call gets an error with the exit status and the last output,
// and attache exits with the same status.
func (l *lab) testDeath(t *testing.T) {
	for _, c := range []client{v1, v2Legacy} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := l.legacy()
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"never.yaml": "server: {restart: {on: never}}\n"})
			steps := l.drive(t, c, s, dir, "death", l.through(s.command, "--config", filepath.Join(dir, "never.yaml")))
			call := findStep(t, steps, "call exit")
			var failure struct {
				Message string
				Data    struct{ Source string }
			}
			if err := json.Unmarshal(call.Error, &failure); err != nil {
				t.Fatalf("the call was not answered with an error: %v\n%s", err, steps)
			}
			if failure.Data.Source != "attache" {
				t.Errorf("error %s: data.source is %q, want attache", call.Error, failure.Data.Source)
			}
			for _, want := range []string{"7", "last words"} {
				if !strings.Contains(string(call.Error), want) {
					t.Errorf("error %s does not contain %q", call.Error, want)
				}
			}
			if !strings.HasSuffix(steps, "{\"exit\":7}\n") {
				t.Errorf("exit status: %s, want the server's 7", tail(steps, 40))
			}
		})
	}
}
