//go:build e2e

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func newID() string { return rand.Text()[:12] }

// briefingText is the text of a briefing, which no server and no agent contains otherwise.
const briefingText = "Keep the seven green lanterns lit"

// An agent is a coding agent from npm with its own home and five servers.
type agent struct {
	program []string
	model   *model
	child   *model // the model of an agent that this one creates
	dir     string // the project
	env     []string
	servers map[string][]string // their commands, by name
}

// agentServers returns the commands of an agent's servers.
func (l *lab) agentServers(dir string) map[string][]string {
	return map[string][]string{
		"files":    l.filesystem(dir).command,
		"memory":   l.memory().command,
		"git":      l.git().command,
		"all":      l.everything().command,
		"thinking": {"node", l.npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js")},
	}
}

func (l *lab) newAgent(t *testing.T, program []string, s service, scripts map[string][]toolCall) *agent {
	t.Helper()
	dir := t.TempDir()
	project, home := filepath.Join(dir, "project"), filepath.Join(dir, "home")
	writeFiles(t, dir, map[string]string{
		"files/note.txt":     "hello\n",
		"project/README.md":  "a project\n",
		"home/.keep":         "",
		"policies/acme.yaml": "scope: acme\nobjectives: [" + briefingText + "]\n",
		"attache.yaml":       "policy: {dir: policies, scope: acme}\n",
	})
	if msg, err := exec.Command("git", "init", "-q", project).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, msg)
	}
	a := &agent{program: program, model: newModel(t, s, scripts), dir: project, servers: l.agentServers(dir)}
	a.env = append(l.env(t), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home+"/state", "TMPDIR="+dir, "MEMORY_FILE_PATH="+dir+"/graph.jsonl")
	for name, command := range a.servers {
		a.servers[name] = l.through(command, "--config", filepath.Join(dir, "attache.yaml"))
	}
	return a
}

// serverCalls returns a call of one tool of each server. Results with structuredContent come first.
func serverCalls(repo string) []toolCall {
	return []toolCall{
		{"files", "list_allowed_directories", `{}`, ""},
		{"memory", "read_graph", `{}`, ""},
		{"git", "git_status", fmt.Sprintf(`{"path":%q}`, repo), ""},
		{"all", "echo", `{"message":"hello"}`, ""},
		{"thinking", "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, ""},
	}
}

// testAgents runs coding agents with a scripted model, and counts how often the model gets the briefing.
func (l *lab) testAgents(t *testing.T) {
	for _, agent := range []struct {
		name, program string
		test          func(t *testing.T, program string)
	}{
		{"claude-2.1.197", "claude-2.1.197/claude", l.claude},
		{"claude-2.1.330", "claude-2.1.330/claude", l.claude},
		{"codex", "codex/vendor/x86_64-unknown-linux-musl/bin/codex", l.codex},
		{"copilot", "copilot/copilot", l.copilot},
		{"gemini", "@google/gemini-cli/bundle/gemini.js", l.gemini},
		{"qwen", "@qwen-code/qwen-code/cli.js", l.qwen},
	} {
		t.Run(agent.name, func(t *testing.T) {
			t.Parallel()
			agent.test(t, l.agentProgram(t, agent.program))
		})
	}
}

// agentProgram returns the path of an agent's program.
func (l *lab) agentProgram(t *testing.T, path string) string {
	t.Helper()
	file := filepath.Join(l.scripts, "agents/node_modules", path)
	requireInstalled(t, file, "the coding agents are missing; run on Linux, amd64: npm --prefix testdata/e2e/agents install --no-package-lock --ignore-scripts")
	return file
}

// requireBriefings checks how often the last request of a script contains the briefing.
func (a *agent) requireBriefings(t *testing.T, script string, least, most int) {
	t.Helper()
	times, ok := a.model.count(script, briefingText)
	if !ok {
		t.Errorf("the model got no request for %s", script)
		return
	}
	t.Logf("%s: the model got the briefing %d times", script, times)
	if times < least || times > most {
		t.Errorf("%s: the model got the briefing %d times, want %d to %d", script, times, least, most)
	}
	a.requireCalled(t, script)
}

// requireSameBriefings checks that a resumed conversation has as many briefings as before.
func (a *agent) requireSameBriefings(t *testing.T, script, before string) {
	t.Helper()
	times, _ := a.model.count(before, briefingText)
	a.requireBriefings(t, script, times, times)
}

// requireCalled checks that all calls of the script were made and none failed. Otherwise the number of
// briefings would prove nothing.
func (a *agent) requireCalled(t *testing.T, script string) {
	t.Helper()
	a.model.mu.Lock()
	defer a.model.mu.Unlock()
	last := a.model.given[script]
	if !a.model.done[script] {
		t.Errorf("%s: not all calls were made", script)
	}
	for _, failed := range []string{`"is_error":true`, "No such tool", "unsupported call", "not found in registry"} {
		if strings.Contains(waitFailed.ReplaceAllString(last, ""), failed) {
			t.Errorf("%s: a call failed: the request has %q", script, failed)
			keep(t, script, last)
		}
	}
}

// run runs the agent with the given arguments until it exits, and returns its stdout.
func (a *agent) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd, mark := a.start(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", args, err, tail(stdout.String(), 3000), tail(stderr.String(), 3000))
	}
	mark.requireGone(t, "the agent has exited")
	return stdout.String()
}

// start returns a command that runs the agent. The caller starts it.
func (a *agent) start(t *testing.T, args ...string) (*exec.Cmd, mark) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*maxWait)
	t.Cleanup(cancel)
	mark := newMark()
	cmd := exec.CommandContext(ctx, a.program[0], append(a.program[1:], args...)...)
	cmd.Dir = a.dir
	cmd.Env = append(a.env, mark.variable())
	cmd.WaitDelay = maxWait
	t.Cleanup(func() { mark.gone(0) })
	return cmd, mark
}

// claude checks the statements of docs/clients.md about Claude Code. In one process, a sub-agent calls first,
// then the main conversation, then one after /clear, which continues after /compact. Another session follows,
// and is resumed with --resume; it starts a sub-agent.
func (l *lab) claude(t *testing.T, program string) {
	calls := serverCalls(l.repo)
	task := toolCall{"", "Agent", `{"description":"look","prompt":"RUN:sub","subagent_type":"general-purpose","run_in_background":false}`, ""}
	a := l.newAgent(t, []string{program}, messages{}, map[string][]toolCall{
		"main":    append([]toolCall{task}, calls...),
		"sub":     calls[:2],
		"clear":   calls[:2],
		"compact": calls[:2],
		"other":   calls[:2],
		"resume":  {calls[0], calls[1], {"", "Agent", `{"description":"look","prompt":"RUN:resumed","subagent_type":"general-purpose","run_in_background":false}`, ""}},
		"resumed": calls[:2],
	})
	a.claudeEnv()
	flags := append(claudeFlags("mcp__files,mcp__memory,mcp__git,mcp__all,mcp__thinking,Agent"), "-p")

	a.claudeServers(t, "files", "memory", "git", "all", "thinking")
	a.turns(t, flags, "RUN:main", "/clear", "RUN:clear", "/compact", "RUN:compact")
	a.requireBriefings(t, "main", 1, 2)
	a.requireBriefings(t, "sub", 1, 2)
	a.requireBriefings(t, "clear", 1, 2)
	a.requireBriefings(t, "compact", 1, 2)
	a.claudeServers(t, "files", "memory")
	const session = "01234567-89ab-4cde-8f01-23456789abcd"
	a.run(t, append(flags, "--session-id", session, "RUN:other")...)
	a.requireBriefings(t, "other", 1, 2)
	a.run(t, append(flags, "--resume", session, "RUN:resume")...)
	a.requireSameBriefings(t, "resume", "other")
	a.requireBriefings(t, "resumed", 1, 2)
}

// claudeEnv adds the variables that Claude Code needs.
func (a *agent) claudeEnv() {
	a.env = append(a.env,
		"ANTHROPIC_BASE_URL="+a.model.url, "ANTHROPIC_API_KEY=sk-dummy",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"MCP_CONNECTION_NONBLOCKING=false", "MCP_TIMEOUT=180000") // otherwise the first turn would start without the servers
}

// claudeFlags returns the flags that allow Claude Code to use the given tools.
func claudeFlags(tools string) []string {
	return []string{"--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", tools}
}

// claudeServers writes the list of servers for Claude Code.
func (a *agent) claudeServers(t *testing.T, names ...string) {
	t.Helper()
	servers := object{}
	for _, name := range names {
		servers[name] = object{"command": a.servers[name][0], "args": a.servers[name][1:]}
	}
	config, err := json.Marshal(object{"mcpServers": servers})
	check(t, err)
	writeFiles(t, a.dir, map[string]string{"mcp.json": string(config)})
}

// turns runs several turns in one process of Claude Code.
func (a *agent) turns(t *testing.T, flags []string, turns ...string) {
	t.Helper()
	cmd, mark := a.start(t, append(flags, "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	check(t, err)
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	in := bufio.NewScanner(stdout)
	in.Buffer(nil, 16<<20)
	for _, turn := range turns {
		fmt.Fprintf(stdin, `{"type":"user","message":{"role":"user","content":%q}}`+"\n", turn)
		if !awaitResult(in) {
			t.Fatalf("%s has no result\n%s", turn, tail(stderr.String(), 3000))
		}
	}
	stdin.Close()
	_, _ = io.Copy(io.Discard, stdout) // until the agent exits
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, tail(stderr.String(), 3000))
	}
	mark.requireGone(t, "the agent has exited")
}

// awaitResult reads up to the result of a turn.
func awaitResult(in *bufio.Scanner) bool {
	for in.Scan() {
		var event struct{ Type string }
		if os.Getenv("E2E_SHOW") != "" {
			println(string(in.Bytes()))
		}
		if json.Unmarshal(in.Bytes(), &event) == nil && event.Type == "result" {
			return true
		}
	}
	return false
}

func (l *lab) codex(t *testing.T, program string) {
	a := l.newAgent(t, []string{program}, responses{}, map[string][]toolCall{
		"main": serverCalls(l.repo), "resume": serverCalls(l.repo)[:2],
	})
	a.codexConfig(t, a.model, "", slices.Collect(maps.Keys(a.servers))...)
	a.run(t, "exec", "--skip-git-repo-check", "RUN:main")
	a.requireBriefings(t, "main", 1, 2)
	a.run(t, "exec", "resume", "--last", "--skip-git-repo-check", "RUN:resume")
	a.requireSameBriefings(t, "resume", "main")
}

// codexConfig writes the configuration of Codex for a model and servers. more has additional lines for each
// server.
func (a *agent) codexConfig(t *testing.T, m *model, more string, names ...string) {
	t.Helper()
	var config strings.Builder
	fmt.Fprintf(&config, `model = "gpt-5"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.fake]
name = "fake"
base_url = %q
wire_api = "responses"
env_key = "FAKE_KEY"
requires_openai_auth = false
supports_websockets = false
`, m.url+"/v1")
	for _, name := range names {
		command := a.servers[name]
		args, err := json.Marshal(command[1:])
		check(t, err)
		fmt.Fprintf(&config, "[mcp_servers.%s]\ncommand = %q\nargs = %s\nrequired = true\nstartup_timeout_sec = 180\n%s", name, command[0], args, more)
	}
	writeFiles(t, filepath.Join(a.dir, "../home/.codex"), map[string]string{"config.toml": config.String()})
	a.env = append(a.env, "FAKE_KEY=sk-dummy")
}

// codexTrusts makes Codex trust the project without a prompt.
func (a *agent) codexTrusts(t *testing.T) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(a.dir, "../home/.codex/config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(file, "[projects.%q]\ntrust_level = \"trusted\"\n", a.dir)
		err = errors.Join(err, file.Close())
	}
	check(t, err)
}

func (l *lab) copilot(t *testing.T, program string) {
	a := l.newAgent(t, []string{program}, messages{}, map[string][]toolCall{
		"main": serverCalls(l.repo), "resume": serverCalls(l.repo)[:2],
	})
	servers := object{}
	for name, command := range a.servers {
		servers[name] = object{"command": command[0], "args": command[1:], "timeout": 180000}
	}
	config, err := json.Marshal(object{"mcpServers": servers})
	check(t, err)
	writeFiles(t, filepath.Join(a.dir, "../home/.copilot"), map[string]string{"mcp-config.json": string(config)})
	a.env = append(a.env, "COPILOT_OFFLINE=true", "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_BASE_URL="+a.model.url,
		"COPILOT_PROVIDER_API_KEY=dummy", "COPILOT_MODEL=claude-sonnet-4")
	const session = "01234567-89ab-4cde-8f01-23456789abcd"
	a.run(t, "--allow-all-tools", "--session-id", session, "-p", "RUN:main")
	a.requireBriefings(t, "main", 1, 1)
	a.run(t, "--allow-all-tools", "--resume", session, "-p", "RUN:resume")
	a.requireSameBriefings(t, "resume", "main")
}

func (l *lab) gemini(t *testing.T, program string) {
	a := l.newAgent(t, []string{"node", program}, generateContent{}, map[string][]toolCall{"main": serverCalls(l.repo)})
	a.geminiConfig(t, a.model, slices.Collect(maps.Keys(a.servers))...)
	a.run(t, "--yolo", "-m", "gemini-2.5-flash", "-p", "RUN:main")
	a.requireBriefings(t, "main", 1, 2)
}

// geminiConfig writes the settings of Gemini CLI for a model and servers.
func (a *agent) geminiConfig(t *testing.T, m *model, names ...string) {
	t.Helper()
	servers := object{}
	for _, name := range names {
		command := a.servers[name]
		servers[name] = object{"command": command[0], "args": command[1:], "trust": true, "timeout": 180000}
	}
	config, err := json.Marshal(object{
		"mcpServers": servers, "security": object{"auth": object{"selectedType": "gemini-api-key"}},
		"privacy": object{"usageStatisticsEnabled": false}, "telemetry": object{"enabled": false},
	})
	check(t, err)
	writeFiles(t, filepath.Join(a.dir, "../home/.gemini"), map[string]string{"settings.json": string(config)})
	a.env = append(a.env, "GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL="+m.url, "GEMINI_CLI_TRUST_WORKSPACE=true")
}

func (l *lab) qwen(t *testing.T, program string) {
	a := l.newAgent(t, []string{filepath.Join(l.node, "node"), program}, messages{}, map[string][]toolCall{
		"main": serverCalls(l.repo), "resume": serverCalls(l.repo)[:2],
	})
	servers := object{}
	for name, command := range a.servers {
		servers[name] = object{"command": command[0], "args": command[1:], "trust": true, "timeout": 180000, "discoveryTimeoutMs": 180000, "alwaysLoadTools": true}
	}
	config, err := json.Marshal(object{"mcpServers": servers, "security": object{"auth": object{"selectedType": "anthropic"}}})
	check(t, err)
	writeFiles(t, filepath.Join(a.dir, "../home/.qwen"), map[string]string{"settings.json": string(config)})
	a.env = append(a.env, "ANTHROPIC_BASE_URL="+a.model.url, "ANTHROPIC_API_KEY=dummy", "ANTHROPIC_MODEL=claude-sonnet-4")
	a.run(t, "--yolo", "-p", "RUN:main")
	a.requireBriefings(t, "main", 1, 1)
	a.run(t, "--yolo", "--continue", "-p", "RUN:resume")
	a.requireSameBriefings(t, "resume", "main")
}
