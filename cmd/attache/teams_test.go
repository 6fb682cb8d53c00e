package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

// teamsConfig returns the settings of the tests of teams. The agent is a program of the tests: see teamsAgent.
const teamsConfig = `teams: {enabled: true, spawn_every: %s}
agents:
  agent: {command: [teamsagent]}
  sandboxed: {command: [teamsagent], trust: sandboxed}
  session: {command: [teamsagent, "{session}"], resume: [teamsagent, resumed, "{session}"], result: claude-json}
  short: {command: [teamsagent], time_limit: 1s}
  stops: {command: [teamsagent], on_parent_end: stop}
  missing: {command: [there-is-no-such-program]}
  persons: {command: [teamsagent], allow: {trust: [direct]}}
  codex: {command: [teamsagent], resume: [teamsagent, "{session}"], result: codex-jsonl}
`

// A team is a user with a configuration and a registry of sessions.
type team struct {
	*testing.T
	dir string
}

// newTeam makes a team. every is the least time between two creations.
func newTeam(t *testing.T, every string) *team {
	t.Helper()
	tm := writeTeam(t, t.TempDir(), every)
	t.Cleanup(tm.stopAgents)
	return tm
}

// writeTeam makes a team in a directory.
func writeTeam(t *testing.T, dir, every string) *team {
	t.Helper()
	attachetest.WriteFile(t, filepath.Join(dir, "config", "attache", "config.yaml"), fmt.Sprintf(teamsConfig, every))
	for _, name := range []string{"proj", "proj2"} {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return &team{t, dir}
}

// env is the environment of the user's processes.
func (tm *team) env(more ...string) []string {
	return append(append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(tm.dir, "config"), "XDG_STATE_HOME="+filepath.Join(tm.dir, "state"), "HOME="+tm.dir, "TEAMS_TEST_DIR="+tm.dir), more...)
}

// attache runs a command and returns its output.
func (tm *team) attache(args ...string) string {
	cmd := exec.Command("attache", args...)
	cmd.Env = tm.env()
	out, _ := cmd.Output()
	return string(out)
}

// stopAgents ends the agents that a test has left running.
func (tm *team) stopAgents() {
	for line := range strings.SplitSeq(tm.attache("agents", "list"), "\n") {
		if words := strings.Fields(line); len(words) > 2 && strings.HasPrefix(words[0], "ses_") {
			tm.attache("agents", "stop", words[0])
		}
	}
	until(tm, "all agents have ended", func() bool {
		out := tm.attache("agents", "list")
		return !strings.Contains(out, " working ") && !strings.Contains(out, " starting ")
	})
}

// patience is longer than any wait of these tests takes, on any machine.
const patience = 5 * time.Minute

// until waits until a condition is true.
func until(tm *team, what string, so func() bool) {
	tm.Helper()
	for begun := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > patience {
			tm.Fatalf("not within %s: %s\n%s", patience, what, tm.attache("agents", "list"))
		}
	}
}

// A member is a session: a client with a server.
type member struct {
	*team
	cmd    *exec.Cmd
	in     io.WriteCloser
	stdout io.ReadCloser
	out    *bufio.Scanner
	id     int

	carried []string // bodies of messages that stood in front of results, not yet read
}

// join starts a session with attache teams, with a workspace and a trust level.
func (tm *team) join(session, workspace, trust string) *member {
	tm.Helper()
	args := []string{"teams", "--session", session, "--trust", trust}
	if workspace != "" {
		args = append(args, "--workspace", filepath.Join(tm.dir, workspace))
	}
	return tm.start(args...)
}

// start starts attache and makes the handshake.
func (tm *team) start(args ...string) *member {
	tm.Helper()
	return startMember(tm, tm.env(), args...)
}

func startMember(tm *team, env []string, args ...string) *member {
	cmd := exec.Command("attache", args...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tm.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tm.Fatal(err)
	}
	m := &member{team: tm, cmd: cmd, in: in, stdout: out, out: bufio.NewScanner(out)}
	m.out.Buffer(nil, 16<<20)
	tm.Cleanup(m.leave)
	m.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	fmt.Fprintln(m.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

// leave ends the session like a client.
func (m *member) leave() {
	_ = m.in.Close()
	_ = m.cmd.Wait()
}

// post sends a request. await returns its answer.
func (m *member) post(method, params string) {
	m.id++
	fmt.Fprintf(m.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", m.id, method, params)
}

// await returns the reply to the last request. It returns false if there is none.
func (m *member) await() (reply string, ok bool) {
	for m.out.Scan() {
		if reply = m.out.Text(); strings.Contains(reply, fmt.Sprintf(`"id":%d,`, m.id)) || strings.HasSuffix(reply, fmt.Sprintf(`"id":%d}`, m.id)) {
			return reply, true
		}
	}
	return "", false
}

// request returns the reply to a request.
func (m *member) request(method, params string) string {
	m.Helper()
	m.post(method, params)
	reply, ok := m.await()
	if !ok {
		m.Fatalf("attache ended before it answered %s", method)
	}
	return reply
}

// unavailable is the text of a tool that got no answer from the registry.
const unavailable = "Teams are not available now"

// call calls a tool and returns the text of its last block, and the blocks before it. On a busy machine the
// registry may not answer in time: then it tries again, like an agent.
func (m *member) call(tool string, arguments any) (text, ahead string, isError bool) {
	m.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		text, ahead, isError = m.callOnce(tool, arguments)
		if !isError || text != unavailable || time.Since(begun) > patience {
			return text, ahead, isError
		}
	}
}

func (m *member) callOnce(tool string, arguments any) (text, ahead string, isError bool) {
	m.Helper()
	in, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	check(m, err)
	var reply struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	raw := m.request("tools/call", string(in))
	if err := json.Unmarshal([]byte(raw), &reply); err != nil || len(reply.Result.Content) == 0 {
		m.Fatalf("%v: %s", err, raw)
	}
	blocks := reply.Result.Content
	for _, b := range blocks[:len(blocks)-1] {
		ahead += b.Text
		m.carried = append(m.carried, bodies(b.Text)...)
	}
	return blocks[len(blocks)-1].Text, ahead, reply.Result.IsError
}

// bodies returns the bodies of the messages in a block.
func bodies(block string) (all []string) {
	first := true
	for line := range strings.SplitSeq(block, "\n") {
		body, ok := strings.CutPrefix(line, "  | ")
		switch {
		case strings.HasPrefix(line, "[m_"):
			all, first = append(all, ""), true
		case ok && first:
			all[len(all)-1], first = body, false
		case ok:
			all[len(all)-1] += "\n" + body
		}
	}
	return all
}

type object = map[string]any

// do calls a tool, which must succeed, and returns its result.
func (m *member) do(tool string, arguments object) object {
	m.Helper()
	text, _, isError := m.call(tool, arguments)
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil || isError {
		m.Fatalf("%s %v: %s", tool, arguments, text)
	}
	return out
}

// refused calls a tool, which must refuse with a text.
func (m *member) refused(want, tool string, arguments object) {
	m.Helper()
	call := m.call
	if want == unavailable {
		call = m.callOnce
	}
	if text, _, isError := call(tool, arguments); text != want || !isError {
		m.Errorf("%s %.200v: %q, want the refusal %q", tool, arguments, text, want)
	}
}

// create creates a session whose agent executes the lines of script.
func (m *member) create(agent string, script ...string) object {
	m.Helper()
	return m.do("create_session", object{"title": "A child", "agent_name": agent, "initial_message": strings.Join(script, "\n")})
}

func (m *member) me() string {
	m.Helper()
	return m.do("list_workspace_sessions", object{})["you"].(string)
}

// sessions returns the sessions by their ids.
func (m *member) sessions(arguments object) map[string]object {
	m.Helper()
	all := map[string]object{}
	for _, s := range m.do("list_workspace_sessions", arguments)["sessions"].([]any) {
		row := s.(object)
		all[row["session_id"].(string)] = row
	}
	return all
}

// messages returns the bodies of the next n messages, which preceded a result or were read.
func (m *member) messages(n int) (got []string) {
	m.Helper()
	for len(m.carried) < n {
		found := m.do("read_messages", object{"wait_seconds": 20})["messages"].([]any)
		for _, f := range found {
			m.carried = append(m.carried, f.(object)["body"].(string))
		}
	}
	got, m.carried = m.carried[:n:n], m.carried[n:]
	return got
}

// touch creates a file in the directory of the test.
func (tm *team) touch(name string) {
	if err := os.WriteFile(filepath.Join(tm.dir, name), nil, 0o600); err != nil {
		tm.Fatal(err)
	}
}

// awaitFile waits until an agent has created a file. By then it has taken the messages that its prompt has.
func (tm *team) awaitFile(name string) {
	tm.Helper()
	until(tm, "an agent has created "+name, func() bool {
		_, err := os.Stat(filepath.Join(tm.dir, name))
		return err == nil
	})
}

// teamsAgent is an agent. It executes these lines of its prompt:
//
//	do call TOOL JSON   call a tool of attache teams and print the result
//	do await FILE       wait until FILE is in the directory of the test
//	do touch FILE       create FILE there
//	do print TEXT       print TEXT
//	do env NAME         print a variable
//	do fork             start a process that would run for an hour
//	do exit N           exit
//
// The word {parent} means the session that created it.
func teamsAgent() {
	prompt, _ := io.ReadAll(os.Stdin)
	dir := os.Getenv("TEAMS_TEST_DIR")
	fmt.Println(strings.Join(os.Args[1:], " "))
	tm := &team{new(testing.T), dir}
	var m *member
	for line := range strings.SplitSeq(string(prompt), "\n") {
		line, ok := strings.CutPrefix(strings.TrimPrefix(line, "  | "), "do ")
		if !ok {
			continue
		}
		word, rest, _ := strings.Cut(strings.ReplaceAll(line, "{parent}", os.Getenv("ATTACHE_PARENT_SESSION_ID")), " ")
		switch word {
		case "call":
			if m == nil {
				m = startMember(tm, os.Environ(), "teams")
			}
			tool, arguments, _ := strings.Cut(rest, " ")
			text, ahead, _ := m.call(tool, json.RawMessage(arguments))
			fmt.Println(ahead + text)
		case "await":
			for {
				if _, err := os.Stat(filepath.Join(dir, rest)); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		case "touch":
			tm.touch(rest)
		case "print":
			fmt.Println(rest)
		case "env":
			fmt.Println(rest + "=" + os.Getenv(rest))
		case "fork":
			cmd := exec.Command("sleep", "3600")
			_ = cmd.Start()
			_ = os.WriteFile(filepath.Join(dir, "forked"), fmt.Append(nil, cmd.Process.Pid), 0o600)
		case "exit":
			code := 0
			_, _ = fmt.Sscan(rest, &code)
			os.Exit(code)
		}
	}
	if m != nil {
		m.leave()
	}
}

// sortedKeys returns the keys of a map in order.
func sortedKeys(m map[string]object) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
