//go:build linux

package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// Whichever process is killed, and when: no process is left except those that on_parent_end allows, no slot is
// lost, and each run has one result. The moments are events that the test observes, not times. If the victim
// has ended already or does not exist yet, the kill changes nothing, and the run must end like any other.
func TestKilledAtEveryMoment(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil { // orphans come to us, and are seen
		t.Skip(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	for _, victim := range []struct {
		name     string
		survived bool // by an agent that was started
		kill     func(*scene)
	}{
		{"supervisor", false, func(s *scene) { s.kill("agent-run") }},
		{"server", true, func(s *scene) { _ = s.m.cmd.Process.Kill() }},
		{"client", true, func(s *scene) { _, _ = s.m.in.Close(), s.m.stdout.Close() }},
		{"agent", false, func(s *scene) { s.kill("teamsagent") }},
	} {
		for _, moment := range moments() {
			t.Run(victim.name+"/"+moment.name, func(t *testing.T) {
				s := newScene(t)
				moment.come(s)
				victim.kill(s)
				s.settle()
				s.check(victim.survived && moment.started)
			})
		}
	}
}

// A moment is an event in a run. come waits for it.
type moment struct {
	name    string
	started bool // the agent, for certain
	come    func(*scene)
}

func moments() []moment {
	return []moment{
		{"asked for", false, func(s *scene) { s.ask("agent") }},
		{"in the registry", false, func(s *scene) { s.ask("agent"); s.until("SELECT count(*) FROM sessions WHERE run > 0") }},
		{"supervisor starts", false, func(s *scene) { s.ask("agent"); s.appears("agent-run") }},
		{"agent starts", true, func(s *scene) { s.ask("agent"); s.appears("teamsagent") }},
		{"runs", true, func(s *scene) { s.ask("agent"); s.until("SELECT count(*) FROM sessions WHERE run_state = 'running'") }},
		{"has a child", true, func(s *scene) { s.ask("agent"); forked(s.team) }},
		{"may end", true, func(s *scene) { s.ask("agent"); forked(s.team); s.touch("end") }},
		{"result is there", true, func(s *scene) { s.ask("agent"); s.touch("end"); s.result(1) }},
		{"runs again", true, func(s *scene) {
			s.ask("session")
			s.touch("end")
			s.result(1)
			_ = os.Remove(filepath.Join(s.dir, "end"))
			s.until("SELECT count(*) FROM sessions WHERE run_state = 'finished'")
			s.m.await()
			s.m.post("tools/call", `{"name":"send_message","arguments":{"session_id":"`+s.child()+`","message":"do await end\ndo print survived"}}`)
			s.until("SELECT count(*) FROM sessions WHERE run = 2 AND run_state = 'running'")
		}},
	}
}

// A scene is a client that has created an agent. The agent has a child process and lives until there is a file
// "end".
type scene struct {
	*team
	m      *member
	db     *sql.DB
	before map[int]bool // the processes that are not of the scene
}

func newScene(t *testing.T) *scene {
	s := &scene{before: map[int]bool{}}
	for _, p := range descendants() {
		s.before[p.pid] = true
	}
	s.team = writeTeam(t, t.TempDir(), "0s")
	s.m = s.join("parent", "proj", "direct")
	s.m.me() // the registry is there
	db, err := sql.Open("sqlite", s.registry())
	check(t, err)
	s.db = db
	t.Cleanup(func() { _ = db.Close() })
	return s
}

func (s *scene) registry() string { return filepath.Join(s.dir, "state", "attache", "teams.db") }

// ask requests an agent and does not wait for the answer.
func (s *scene) ask(agent string) {
	s.m.post("tools/call", `{"name":"create_session","arguments":{"title":"A child","agent_name":"`+agent+`","initial_message":"do fork\ndo await end\ndo print survived"}}`)
}

// appears waits until the command line of a process of the scene contains a text.
func (s *scene) appears(text string) {
	s.Helper()
	until(s.team, "there is a process "+text, func() bool { return len(s.find(text)) > 0 })
}

// until waits until a query returns more than 0.
func (s *scene) until(query string) {
	s.Helper()
	until(s.team, query, func() bool { return s.number(query) > 0 })
}

// result waits for so many results in the mailbox of the parent.
func (s *scene) result(n int) {
	s.Helper()
	s.until(fmt.Sprintf("SELECT count(*) >= %d FROM messages WHERE kind = 'result'", n))
}

func (s *scene) number(query string) (n int) {
	s.Helper()
	if err := s.db.QueryRow(query).Scan(&n); err != nil {
		s.Fatal(query, err)
	}
	return n
}

func (s *scene) child() (id string) {
	check(s, s.db.QueryRow("SELECT id FROM sessions WHERE run > 0").Scan(&id))
	return id
}

// find returns the processes of the scene whose command line contains a text.
func (s *scene) find(text string) (pids []int) {
	for _, p := range descendants() {
		if !s.before[p.pid] && strings.Contains(p.command, text) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

func (s *scene) kill(text string) {
	for _, pid := range s.find(text) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// settle ends the agent and the client, and waits until nothing runs. A run without a supervisor is lost when
// its lease is over: settle ends the lease.
func (s *scene) settle() {
	s.Helper()
	s.touch("end")
	s.m.await()
	s.m.leave()
	until(s.team, "no process is left", func() bool { return len(s.find("")) == 0 })
	for pid := 1; pid > 0; { // the orphans, which are ours
		pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	}
	if _, err := s.db.Exec("UPDATE sessions SET run_until = 1 WHERE run_state IN ('starting', 'running')"); err != nil {
		s.Fatal(err)
	}
	db, err := teams.Open(context.Background(), teams.Options{Path: s.registry()})
	check(s, err)
	defer db.Close()
	check(s, db.Sweep(context.Background(), 24*time.Hour))
}

// check checks that each run has one result and no slot is taken, and the output of agents that survive.
func (s *scene) check(survived bool) {
	s.Helper()
	runs, results := s.number("SELECT coalesce(sum(run), 0) FROM sessions"), s.number("SELECT count(*) FROM messages WHERE kind = 'result'")
	if runs != results {
		s.Errorf("%d runs have %d results", runs, results)
	}
	if n := s.number("SELECT count(*) FROM messages WHERE kind = 'result' AND body LIKE '%survived%'"); survived && n != runs {
		s.Errorf("%d of %d agents say that they survived", n, runs)
	}
	if n := s.number("SELECT (SELECT coalesce(sum(children), 0) FROM sessions) + (SELECT coalesce(sum(live), 0) FROM workspaces)"); n != 0 {
		s.Errorf("%d slots are taken, and nothing runs", n)
	}
}

// A process is a descendant of the test process.
type process struct {
	pid, parent int
	command     string
}

// descendants returns the running descendants of the test process.
func descendants() (all []process) {
	ours := map[int]bool{os.Getpid(): true}
	entries, _ := os.ReadDir("/proc") // in the order of their ids, so parents come first but for a wrap
	for _, e := range entries {
		p := process{}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		p.pid, _ = strconv.Atoi(e.Name())
		p.parent, _ = strconv.Atoi(fields[1])
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		p.command = string(command)
		if fields[0] != "Z" && fields[0] != "X" {
			all = append(all, p)
		}
	}
	for found := true; found; {
		found = false
		for _, p := range all {
			if ours[p.parent] && !ours[p.pid] {
				ours[p.pid], found = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p process) bool { return !ours[p.pid] || p.pid == os.Getpid() })
}
