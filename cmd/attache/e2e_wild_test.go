//go:build e2e

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A wildServer is a popular server from npm, with its arguments and the variables that it needs to start. Tokens
// are dummies.
type wildServer struct {
	name string
	args []string
	env  []string
	file string // the program, if it is not the package's first command
}

// wildServers lists the servers. In their arguments and variables, DIR is the workspace.
func wildServers() []wildServer {
	s := func(name string, env []string, args ...string) wildServer {
		return wildServer{name: name, args: args, env: env}
	}
	return []wildServer{
		s("@agent-infra/mcp-server-filesystem", nil, "--allowed-directories", "DIR"),
		s("@allpepper/memory-bank-mcp", []string{"MEMORY_BANK_ROOT=DIR"}),
		s("@brave/brave-search-mcp-server", []string{"BRAVE_API_KEY=x"}, "--transport", "stdio"),
		s("@circleci/mcp-server-circleci", []string{"CIRCLECI_TOKEN=x"}),
		s("@coding-solo/godot-mcp", nil),
		s("@cyanheads/git-mcp-server", nil),
		s("@djankies/vitest-mcp", nil),
		s("@eslint/mcp", nil),
		s("@modelcontextprotocol/server-everything", nil, "stdio"),
		s("@modelcontextprotocol/server-filesystem", nil, "DIR"),
		s("@modelcontextprotocol/server-github", []string{"GITHUB_PERSONAL_ACCESS_TOKEN=x"}),
		s("@modelcontextprotocol/server-gitlab", []string{"GITLAB_PERSONAL_ACCESS_TOKEN=x"}),
		s("@modelcontextprotocol/server-memory", []string{"MEMORY_FILE_PATH=DIR/graph.jsonl"}),
		s("@modelcontextprotocol/server-sequential-thinking", nil),
		s("@modelcontextprotocol/server-slack", []string{"SLACK_BOT_TOKEN=xoxb-x", "SLACK_TEAM_ID=T1"}),
		s("@notionhq/notion-mcp-server", []string{"NOTION_TOKEN=ntn_x"}),
		s("@playwright/mcp", nil, "--headless"),
		s("@postman/postman-mcp-server", []string{"POSTMAN_API_KEY=PMAK-x"}, "--full"),
		s("@roychri/mcp-server-asana", []string{"ASANA_ACCESS_TOKEN=x"}),
		s("@sentry/mcp-server", nil, "--access-token=x"),
		s("@tacticlaunch/mcp-linear", []string{"LINEAR_API_TOKEN=lin_api_x"}),
		s("@upstash/context7-mcp", nil),
		s("@zereight/mcp-gitlab", []string{"GITLAB_PERSONAL_ACCESS_TOKEN=x"}),
		s("backlog-mcp-server", []string{"BACKLOG_DOMAIN=x.backlog.com", "BACKLOG_API_KEY=x"}),
		s("bitbucket-mcp", []string{"BITBUCKET_URL=https://bitbucket.org/acme", "BITBUCKET_USERNAME=x", "BITBUCKET_PASSWORD=x", "BITBUCKET_WORKSPACE=acme"}),
		s("chrome-devtools-mcp", nil, "--headless", "--no-usage-statistics"),
		s("figma-developer-mcp", nil, "--stdio", "--figma-api-key=x", "--no-telemetry"),
		{name: "github-mcp-server", file: "dist/index.js"},
		s("mcp-atlassian", []string{"ATLASSIAN_BASE_URL=https://x.atlassian.net", "ATLASSIAN_EMAIL=a@b.c", "ATLASSIAN_API_TOKEN=x"}),
		s("mcp-git", nil),
		s("nx-mcp", nil, "DIR"),
		s("tavily-mcp", []string{"TAVILY_API_KEY=tvly-x"}),
		s("terraform-mcp-server", nil),
		s("typescript-mcp", nil),
		s("xcodebuildmcp", nil, "mcp"),
	}
}

// program returns the version of an npm package and the file to run: program, or its first
// command if program is empty.
func (l *lab) program(t *testing.T, name, program string) (version, file string) {
	t.Helper()
	dir := filepath.Join(l.scripts, "wild/node_modules", name)
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		dir = l.npm(name)
		data, err = os.ReadFile(filepath.Join(dir, "package.json"))
	}
	if err != nil {
		t.Fatalf("the npm packages are missing; run: npm --prefix testdata/e2e/wild install --no-package-lock --ignore-scripts --omit=peer --omit=optional (%v)", err)
	}
	var manifest struct {
		Version string
		Bin     json.RawMessage
	}
	check(t, json.Unmarshal(data, &manifest))
	if program != "" || json.Unmarshal(manifest.Bin, &program) == nil {
		return manifest.Version, filepath.Join(dir, program)
	}
	var commands map[string]string
	if err := json.Unmarshal(manifest.Bin, &commands); err != nil || len(commands) == 0 {
		t.Fatalf("%s has no command in its bin %s", name, manifest.Bin)
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(commands)), func(a, b string) int {
		return bytes.Index(manifest.Bin, []byte(`"`+a+`"`)) - bytes.Index(manifest.Bin, []byte(`"`+b+`"`))
	})
	return manifest.Version, filepath.Join(dir, commands[first])
}

// offline returns the words before a command that run it without any network, even loopback. It returns nil if
// the system does not allow that.
func offline() []string {
	words := []string{"unshare", "--user", "--map-root-user", "--net", "--"}
	if exec.Command(words[0], append(words[1:], "true")...).Run() != nil {
		return nil
	}
	return words
}

// TestWild puts attache, without configuration, in front of third-party servers, in a session with a known
// workspace. Attache must pass on their initialize, their lists and ten calls byte for byte, except for required
// properties that a person judged to be the workspace's path.
func TestWild(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if l.standIn {
		t.Skip("needs attache")
	}
	words := offline()
	if words == nil && os.Getenv("CI") == "true" {
		t.Fatal("the system allows no network namespace, so the servers could reach their services")
	}
	judged := judgedArguments(t)
	servers := wildServers()
	rows := make([]string, len(servers))
	t.Run("servers", func(t *testing.T) {
		for i, s := range servers {
			t.Run(strings.ReplaceAll(s.name, "/", "_"), func(t *testing.T) {
				t.Parallel()
				rows[i] = l.wild(t, s, words, judged)
			})
		}
	})
	if !t.Failed() && !slices.Contains(rows, "") {
		requireTable(t, rows)
	}
}

// requireTable checks that the table in docs/compatibility.md is up to date. With E2E_UPDATE it updates it.
func requireTable(t *testing.T, rows []string) {
	t.Helper()
	const name = "../../docs/compatibility.md"
	data, err := os.ReadFile(name)
	check(t, err)
	const begin, end = "|---|---|---|\n", "\n\n"
	before, rest, ok := strings.Cut(string(data), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", name)
	}
	table := strings.Join(rows, "\n")
	if table == old {
		return
	}
	if os.Getenv("E2E_UPDATE") == "" {
		t.Errorf("the table of docs/compatibility.md is out of date; E2E_UPDATE=1 updates it:\n%s", table)
		return
	}
	check(t, os.WriteFile(name, []byte(before+begin+table+end+after), 0o644))
}

// wild tests one server and returns its line of the table.
func (l *lab) wild(t *testing.T, s wildServer, offline []string, judged []judgedArgument) string {
	version, file := l.program(t, s.name, s.file)
	copies, dir := t.TempDir(), t.TempDir()
	here := func(words []string) []string {
		return strings.Split(strings.ReplaceAll(strings.Join(words, "\n"), "DIR", dir), "\n")
	}
	server := slices.Concat([]string{l.tee, copies, "server", "node", file}, s.args)
	w := l.startWild(t, here(slices.Concat(offline, l.through(server))), dir, here(s.env))
	w.talk(offline != nil)
	w.close()

	in, out := recordings(t, copies, "server", "in"), recordings(t, copies, "server", "out")
	if len(in) != 1 || len(out) != 1 {
		t.Fatalf("the server was started %d times, want once\n%s", len(in), tail(w.stderr.String(), 2000))
	}
	filled := newFills(s.name, dir, judged)
	frames := lines(out[0])
	noise := len(frames)
	frames = slices.DeleteFunc(frames, func(line string) bool { return !strings.HasPrefix(line, "{") })
	noise -= len(frames)
	compareLines(t, "server to client", frames, lines(w.got.String()), filled.reply)
	compareLines(t, "client to server", lines(w.sent.String()), lines(in[0]), filled.call)
	tools := listedTools(t, frames)
	requireJudged(t, s.name, version, tools, judged)
	requireListed(t, s.name, version, tools)
	t.Logf("%d tools, %d of %d calls answered, %d bytes from the server", len(tools), w.answered, w.calls, len(out[0]))
	if w.calls != 10 {
		t.Errorf("%d calls were made, and docs/compatibility.md says ten", w.calls)
	}
	differs := filled.words()
	if noise > 0 {
		differs = append(differs, "its lines of log on stdout are kept back")
	}
	return fmt.Sprintf("| `%s` %s | %d | %s |", s.name, version, len(tools), strings.Join(differs, ", "))
}

// lines splits a recording into frames without their newlines.
func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

// compareLines checks that the received frames are those sent, except for frames that may differ. Frames sent
// after the peer has exited may be missing.
func compareLines(t *testing.T, what string, sent, arrived []string, mayDiffer func(sent, arrived string) bool) {
	t.Helper()
	for i, frame := range arrived {
		if i >= len(sent) {
			t.Errorf("%s: frame %d was never sent: %s", what, i+1, cut(frame, 0))
			return
		}
		if frame != sent[i] && !mayDiffer(sent[i], frame) {
			requireSame(t, what, sent[i], frame)
		}
	}
}

// A wildSession is a client of one server behind attache. It records all bytes in both directions.
type wildSession struct {
	t        *testing.T
	cmd      *exec.Cmd
	mark     mark
	stdin    io.WriteCloser
	frames   chan map[string]json.RawMessage
	got      bytes.Buffer // valid after close
	sent     bytes.Buffer
	stderr   bytes.Buffer
	id       int
	calls    int
	answered int
	dir      string
}

func (l *lab) startWild(t *testing.T, command []string, dir string, more []string) *wildSession {
	t.Helper()
	w := &wildSession{t: t, mark: newMark(), frames: make(chan map[string]json.RawMessage, 64), dir: dir}
	ctx, cancel := context.WithTimeout(t.Context(), 4*maxWait)
	t.Cleanup(cancel)
	w.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	w.cmd.Dir = dir
	home := t.TempDir()
	w.cmd.Env = append(l.env(t, more...), "HOME="+home, "XDG_CONFIG_HOME="+home, "TMPDIR="+home, "CLAUDE_PROJECT_DIR="+dir, w.mark.variable())
	w.cmd.Stderr = &w.stderr
	w.cmd.WaitDelay = maxWait
	stdout, err := w.cmd.StdoutPipe()
	check(t, err)
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	check(t, w.cmd.Start())
	t.Cleanup(func() { w.mark.gone(0) })
	go w.read(stdout)
	return w
}

// read sends the server's frames to w.frames until the server exits. Other lines are only recorded.
func (w *wildSession) read(stdout io.Reader) {
	defer close(w.frames)
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadBytes('\n')
		w.got.Write(line)
		var frame map[string]json.RawMessage
		if json.Unmarshal(line, &frame) == nil {
			w.frames <- frame
		}
		if err != nil {
			return
		}
	}
}

func (w *wildSession) send(frame string) {
	w.t.Helper()
	w.sent.WriteString(frame + "\n")
	if _, err := io.WriteString(w.stdin, frame+"\n"); err != nil {
		w.t.Fatalf("%v\n%s", err, tail(w.stderr.String(), 2000))
	}
}

// request sends a request and returns its id.
func (w *wildSession) request(method, params string) string {
	w.id++
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, w.id, method, params))
	return fmt.Sprint(w.id)
}

// await reads frames until all requests with these ids are answered or the time is over. It answers the server's
// requests, and returns the replies by id.
func (w *wildSession) await(limit time.Duration, ids ...string) map[string]map[string]json.RawMessage {
	w.t.Helper()
	replies := make(map[string]map[string]json.RawMessage)
	over := time.After(limit)
	for len(replies) < len(ids) {
		select {
		case frame, ok := <-w.frames:
			id := string(frame["id"])
			switch {
			case !ok:
				return replies
			case frame["method"] == nil && slices.Contains(ids, id):
				replies[id] = frame
			case string(frame["method"]) == `"roots/list"`:
				w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":%q}]}}`, id, "file://"+w.dir))
			case frame["method"] != nil && id != "":
				w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, id))
			}
		case <-over:
			return replies
		}
	}
	return replies
}

// talk sends the messages of the session: initialize, each list, and ten calls if calls is true.
func (w *wildSession) talk(calls bool) {
	w.t.Helper()
	id := w.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"e2e","version":"1"}}`)
	if len(w.await(maxWait, id)) == 0 {
		w.t.Fatalf("no answer to initialize\n%s", tail(w.stderr.String(), 2000))
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	tools := w.list()
	w.await(maxWait, w.request("resources/list", "{}"), w.request("resources/templates/list", "{}"), w.request("prompts/list", "{}"))
	if !calls {
		return
	}
	var ids []string
	for i := range 10 {
		tool := tools[i%len(tools)]
		ids = append(ids, w.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool.Name, tool.InputSchema.example())))
	}
	w.calls, w.answered = len(ids), len(w.await(15*time.Second, ids...))
}

// list returns the tools that the client sees.
func (w *wildSession) list() []wildTool {
	w.t.Helper()
	var all []wildTool
	params := "{}"
	for {
		id := w.request("tools/list", params)
		var page struct {
			Tools      []wildTool
			NextCursor string
		}
		if err := json.Unmarshal(w.await(maxWait, id)[id]["result"], &page); err != nil {
			w.t.Fatalf("tools/list: %v\n%s", err, tail(w.stderr.String(), 2000))
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" {
			return all
		}
		params = fmt.Sprintf(`{"cursor":%q}`, page.NextCursor)
	}
}

// close closes the server's stdin and reads its output to the end.
func (w *wildSession) close() {
	w.t.Helper()
	w.stdin.Close()
	for range w.frames {
	}
	_ = w.cmd.Wait() // the exit status does not matter
	w.mark.requireGone(w.t, "the client has exited")
}
