//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// supervisor returns the process id of an agent's supervisor.
func supervisor(tm *team, id string) (pid int) {
	tm.Helper()
	out, _ := exec.Command("ps", "-ww", "-A", "-o", "pid=,args=").Output()
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.HasSuffix(strings.TrimSpace(line), "agent-run "+id) {
			_, _ = fmt.Sscan(line, &pid)
			return pid
		}
	}
	tm.Fatalf("no supervisor of %s runs", id)
	return 0
}

// forked waits for the process that an agent has started, and returns its id.
func forked(tm *team) (pid int) {
	tm.Helper()
	until(tm, "the agent has started a process", func() bool {
		data, _ := os.ReadFile(filepath.Join(tm.dir, "forked"))
		_, err := fmt.Sscan(string(data), &pid)
		return err == nil
	})
	return pid
}

// Whoever ends an agent, no process and no slot is lost, and there is one result. See also
// TestKilledAtEveryMoment.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		kill func(m *member, id string)
		want string // begins the result
	}{
		{"stopped by the operator", func(m *member, id string) { m.attache("agents", "stop", id) }, "ended, after "},
		{"ended by its parent", func(m *member, id string) { m.do("end_session", object{"session_id": id}) }, "ended, after "},
		{"supervisor asked to end", func(m *member, id string) { _ = syscall.Kill(supervisor(m.team, id), syscall.SIGTERM) }, "stopped, after "},
	} {
		t.Run(test.name, func(t *testing.T) {
			tm := newTeam(t, "0s")
			m := tm.join("parent", "proj", "direct")
			id := m.create("agent", "do fork", "do await end")["session_id"].(string)
			grandchild := forked(tm)
			test.kill(m, id)
			if got := m.messages(1); !strings.HasPrefix(got[0], test.want) {
				t.Errorf("the result is %q, want %q…", got, test.want)
			}
			until(tm, "the agent's process is gone", func() bool { return !alive(grandchild) })
			if left := m.do("read_messages", object{})["messages"].([]any); len(left)+len(m.carried) > 0 {
				t.Errorf("more messages: %v %v", left, m.carried)
			}
			// One that would end by itself might have ended before it is counted.
			if out := m.create("agent", "do await end"); out["children"] != 1.0 {
				t.Errorf("a slot was lost: %v", out)
			}
		})
	}
	t.Run("the client and its server killed", func(t *testing.T) {
		tm := newTeam(t, "0s")
		m := tm.join("parent", "proj", "direct")
		keeps := m.create("agent", "do await end", "do print survived")["session_id"].(string)
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		if pid := supervisor(tm, keeps); !alive(pid) {
			t.Error("the supervisor has gone with its client")
		}
		tm.touch("end")
		again := tm.join("parent", "proj", "direct")
		if got := again.messages(1); !strings.Contains(got[0], "survived") {
			t.Errorf("the result is %q", got)
		}
	})
	t.Run("the server of the teams tools killed by its group", func(t *testing.T) {
		tm := newTeam(t, "0s")
		m := tm.join("parent", "proj", "direct")
		id := m.create("agent", "do await end", "do print survived")["session_id"].(string)
		if group, err := syscall.Getpgid(supervisor(tm, id)); err != nil || group == syscall.Getpgrp() {
			t.Errorf("the supervisor is of the client's group: %v", err)
		}
		tm.touch("end")
		m.messages(1)
	})
}

// Each way to end a run gives one result.
func TestRunsEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, agent string
		script      string
		want        []string
	}{
		{"exit status", "agent", "do exit 3", []string{"failed after ", "exit status 3"}},
		{"time limit", "short", "do await never", []string{"killed after 1s, after "}},
		{"much output", "agent", "do print " + strings.Repeat("x", 9000), []string{"finished after ", strings.Repeat("x", 9000)}},
		{"secrets stay", "agent", "do env CLAUDE_CODE_SESSION_ID\ndo env CLAUDECODE\ndo env ATTACHE_API_KEY\ndo env CODEX_HOME\ndo env CLAUDE_CODE_CLIENT_CERT\ndo env GEMINI_CLI_SYSTEM_SETTINGS_PATH\ndo env CODEX_CA_CERTIFICATE\ndo env CODEX_ACCESS_TOKEN\ndo env CODEX_SQLITE_HOME\ndo env CLAUDE_CODE_CERT_STORE\ndo env CLAUDE_CODE_PROXY_RESOLVES_HOSTS", []string{
			"CLAUDE_CODE_SESSION_ID=\n", "CLAUDECODE=\n", "ATTACHE_API_KEY=\n", "CODEX_HOME=/kept", "CLAUDE_CODE_CLIENT_CERT=/kept", "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/kept", "CODEX_CA_CERTIFICATE=/kept", "CODEX_ACCESS_TOKEN=kept", "CODEX_SQLITE_HOME=/kept", "CLAUDE_CODE_CERT_STORE=kept", "CLAUDE_CODE_PROXY_RESOLVES_HOSTS=kept",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tm := newTeam(t, "0s")
			env := tm.env("CLAUDE_CODE_SESSION_ID=of-the-parent", "CLAUDECODE=1", "ATTACHE_API_KEY=atk_secret", "CODEX_HOME=/kept", "CLAUDE_CODE_CLIENT_CERT=/kept", "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/kept", "CODEX_CA_CERTIFICATE=/kept", "CODEX_ACCESS_TOKEN=kept", "CODEX_SQLITE_HOME=/kept", "CLAUDE_CODE_CERT_STORE=kept", "CLAUDE_CODE_PROXY_RESOLVES_HOSTS=kept")
			m := startMember(tm, env, "teams", "--workspace", filepath.Join(tm.dir, "proj"))
			m.create(test.agent, test.script)
			got := m.messages(1)
			for _, want := range test.want {
				if !strings.Contains(got[0], want) {
					t.Errorf("the result lacks %.100q:\n%.2000s", want, got[0])
				}
			}
		})
	}
	t.Run("never started", func(t *testing.T) {
		m := newTeam(t, "0s").join("parent", "proj", "direct")
		var out object
		until(m.team, "create_session has waited until the supervisor failed", func() bool {
			if out != nil {
				m.messages(1)
			}
			out = m.create("missing", "x")
			return out["state"] != "running"
		})
		if out["state"] != "failed" || !strings.Contains(out["why"].(string), `cannot start "there-is-no-such-program"`) || out["children"] != 0.0 {
			t.Errorf("got %v", out)
		}
		if got := m.messages(1); !strings.HasPrefix(got[0], "could not start: cannot start ") {
			t.Errorf("the result is %q", got)
		}
		if out := m.do("send_message", object{"session_id": out["session_id"], "message": "x"}); out["reach"] != "none" {
			t.Errorf("a message to an agent that cannot be resumed: %v", out)
		}
	})
}

// A message restarts an agent that has ended, in its own session.
func TestResumed(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "0s")
	m := tm.join("parent", "proj", "direct")
	id := m.create("session", "do print first")["session_id"].(string)
	first := m.messages(1)[0]
	out := m.do("send_message", object{"session_id": id, "message": "do print second"})
	if out["reach"] != "resume" {
		t.Errorf("got %v", out)
	}
	second := m.messages(1)[0]
	session := strings.Fields(strings.SplitN(first, "\n", 3)[1])[0]
	if !strings.Contains(second, "resumed "+session) || !strings.Contains(second, "\n  second") && !strings.Contains(second, "\nsecond") {
		t.Errorf("first: %s\nthen: %s", first, second)
	}
	if children := m.sessions(object{"children_of": "me", "active_only": false}); len(children) != 1 {
		t.Errorf("the children are %v", children)
	}
}

// A spawned session cannot be claimed with only its id, and no flag raises its trust.
func TestClaimed(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "0s")
	m := tm.join("parent", "proj", "direct")
	m.create("sandboxed", "do env ATTACHE_SESSION_ID", "do env ATTACHE_SESSION_PROOF", "do await end")
	until(tm, "the agent says who it is", func() bool {
		return strings.Contains(tm.attache("agents", "logs", sortedKeys(m.sessions(object{"children_of": "me"}))[0]), "ATTACHE_SESSION_PROOF=")
	})
	said := tm.attache("agents", "logs", sortedKeys(m.sessions(object{"children_of": "me"}))[0])
	env := map[string]string{}
	for line := range strings.SplitSeq(said, "\n") {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	workspace := filepath.Join(tm.dir, "proj")
	forged := startMember(tm, tm.env("ATTACHE_SESSION_ID="+env["ATTACHE_SESSION_ID"]), "teams", "--workspace", workspace)
	forged.refused("Session context not available", "list_workspace_sessions", object{})
	raised := startMember(tm, tm.env("ATTACHE_SESSION_ID="+env["ATTACHE_SESSION_ID"], "ATTACHE_SESSION_PROOF="+env["ATTACHE_SESSION_PROOF"], "ATTACHE_TRUST_LEVEL=sandboxed"),
		"teams", "--workspace", workspace, "--trust", "direct")
	for id, row := range raised.sessions(object{}) {
		if row["is_you"] == true && row["trust_level"] != "sandboxed" {
			t.Errorf("%s is %v", id, row)
		}
	}
}

// attache restart restarts the only server beside attache-teams without being told its name.
func TestRestartBesideTeams(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "0s")
	tm.join("parent", "proj", "direct").me()
	tm.start("--session", "parent", "--", "echoserver").request("ping", "{}")
	until(tm, "attache restart restarts echoserver", func() bool {
		out := tm.attache("restart")
		if strings.Contains(out, "attache-teams") {
			t.Fatalf("got %s", out)
		}
		return strings.HasPrefix(out, "echoserver: process ")
	})
}
