//go:build e2e

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recipe writes the rules of a shipped recipe as a configuration for one server.
func (l *lab) recipe(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("internal/recipes/recipes", name+".yaml"))
	check(t, err)
	rules := regexp.MustCompile(`(?m)^match:.*\n`).ReplaceAllString(string(data), "")
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"attache.yaml": rules})
	return filepath.Join(dir, "attache.yaml")
}

// testGitRecipe calls each tool of the git server through attache with the git recipe, with and without the
// path, and checks that the recipe's tools use the workspace's path.
func (l *lab) testGitRecipe(t *testing.T) {
	copies := t.TempDir()
	command := append([]string{l.tee, copies, "server"}, l.git().command...)
	w := l.startWild(t, l.through(command, "--config", l.recipe(t, "git")), t.TempDir(), []string{"ATTACHE_WORKSPACE=" + l.repo})
	id := w.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	if len(w.await(maxWait, id)) == 0 {
		t.Fatalf("no answer to initialize\n%s", tail(w.stderr.String(), 2000))
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, tool := range w.list() {
		// No tool has this argument: the server refuses the call, so the call has no effect.
		w.await(maxWait, w.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"e2e":"without"}}`, tool.Name)))
		w.await(maxWait, w.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"e2e":"with","path":%q}}`, tool.Name, elsewhere)))
	}
	w.close()

	repository := make(map[string]bool) // the tools whose path is the repository, by workspace-arguments.txt
	for _, j := range judgedArguments(t) {
		for _, tool := range j.tools {
			if j.server == "@cyanheads/git-mcp-server" && j.property == "path" && j.verdict == "path" {
				repository[tool] = true
			}
		}
	}
	seen := 0
	for _, frame := range lines(strings.Join(recordings(t, copies, "server", "in"), "")) {
		var call struct {
			Params struct {
				Name      string
				Arguments struct {
					E2E  string
					Path *string
				}
			}
		}
		if json.Unmarshal([]byte(frame), &call) != nil || call.Params.Arguments.E2E == "" {
			continue
		}
		seen++
		name, path, with := call.Params.Name, call.Params.Arguments.Path, call.Params.Arguments.E2E == "with"
		want := &l.repo
		switch {
		case name == "git_push": // pinned
		case with:
			want = &elsewhere
		case !repository[name]:
			want = nil
		}
		if (path == nil) != (want == nil) || path != nil && *path != *want {
			t.Errorf("the server got %s, want the path %v", frame, want)
		}
	}
	if seen != 2*28 {
		t.Errorf("%d calls reached the server, want two of each of its 28 tools", seen)
	}
}

// A pushRace is a repository with a commit of a colleague, and a clone that lacks that commit and has its own.
type pushRace struct {
	t         *testing.T
	l         *lab
	dir       string
	colleague string // the colleague's commit
}

func (l *lab) newPushRace(t *testing.T) *pushRace {
	t.Helper()
	r := &pushRace{t: t, l: l, dir: t.TempDir()}
	for _, words := range []string{
		"init -q --bare -b main origin.git",
		"clone -q origin.git ours",
		"-C ours commit -q --allow-empty -m first",
		"-C ours push -q origin HEAD:main",
		"clone -q origin.git theirs",
		"-C theirs commit -q --allow-empty -m colleague",
		"-C theirs push -q origin HEAD:main",
		"-C theirs push -q origin HEAD:colleague",
		"-C ours commit -q --allow-empty -m ours",
	} {
		r.git(strings.Fields(words)...)
	}
	r.colleague = r.git("-C", "origin.git", "rev-parse", "main")
	return r
}

// git runs git and returns its output.
func (r *pushRace) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=e2e", "-c", "user.email=e2e@example.invalid", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = r.l.env(r.t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// lost returns the branches that have lost the colleague's commit, and restores them.
func (r *pushRace) lost() string {
	r.t.Helper()
	var gone []string
	refs := r.git("-C", "origin.git", "for-each-ref", "--contains", r.colleague, "--format=%(refname:short)")
	for _, branch := range []string{"main", "colleague"} {
		if !slices.Contains(strings.Fields(refs), branch) {
			gone = append(gone, branch)
			r.git("-C", "origin.git", "update-ref", "refs/heads/"+branch, r.colleague)
		}
	}
	return strings.Join(gone, " and ")
}

// waysToForce returns ways to overwrite or remove a colleague's commit with the tools of the git server. DIR is
// the directory of the repositories.
func waysToForce() [][]string {
	push := func(arguments string) []string { return []string{"git_push", arguments} }
	ours := func(members string) []string { return push(`{"path":"DIR/ours",` + members + `}`) }
	return [][]string{
		ours(`"force":true,"confirmed":true`),
		ours(`"forceWithLease":true`),
		ours(`"branch":"main","force":true,"confirmed":true`),
		ours(`"branch":"+main"`),
		ours(`"branch":"+HEAD:main"`),
		ours(`"branch":"+main","remoteBranch":"main"`),
		ours(`"branch":"+HEAD","remoteBranch":"main"`),
		ours(`"branch":"+refs/heads/*:refs/heads/*"`),
		ours(`"branch":"-f"`),
		ours(`"branch":"--force"`),
		ours(`"branch":"--mirror"`),
		ours(`"branch":"-d","remoteBranch":"colleague"`),
		ours(`"remoteBranch":"+main"`),
		ours(`"branch":":colleague"`),
		ours(`"branch":":","remoteBranch":"colleague"`),
		ours(`"branch":"colleague","delete":true,"confirmed":true`),
		ours(`"remoteBranch":"colleague","delete":true`),
		ours(`"branch":["+main"]`),
		ours(`"branch":"main","branch":"+main"`),
		ours(`"branch":"main","Branch":"+main"`),
		{
			"git_clone", `{"url":"file://DIR/origin.git","path":"DIR/mirror","mirror":true}`,
			"git_branch", `{"path":"DIR/mirror","mode":"delete","branchName":"colleague","force":true}`,
			"git_push", `{"path":"DIR/mirror"}`,
		},
	}
}

// try makes the calls of each way in one session, and returns the branches that each way has destroyed.
func (r *pushRace) try(flags ...string) map[string]string {
	r.t.Helper()
	command := r.l.git().command
	if flags != nil {
		command = r.l.through(command, flags...)
	}
	w := r.l.startWild(r.t, command, r.dir, []string{"ATTACHE_WORKSPACE=" + filepath.Join(r.dir, "ours")})
	id := w.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	if len(w.await(maxWait, id)) == 0 {
		r.t.Fatalf("no answer to initialize\n%s", tail(w.stderr.String(), 2000))
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.list()
	destroyed := make(map[string]string)
	for _, way := range waysToForce() {
		for call := range slices.Chunk(way, 2) {
			params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, call[0], strings.ReplaceAll(call[1], "DIR", r.dir))
			w.await(maxWait, w.request("tools/call", params))
		}
		destroyed[strings.Join(way, " ")] = r.lost()
	}
	// The session still works, and a push without force succeeds.
	w.await(maxWait, w.request("tools/call", `{"name":"git_push","arguments":{"path":"`+r.dir+`/ours","branch":"main","remoteBranch":"feature/ours"}}`))
	w.close()
	if !strings.Contains(r.git("-C", "origin.git", "branch", "--list", "feature/ours"), "feature/ours") {
		r.t.Errorf("a push without force to a new branch did not succeed\n%s", tail(w.got.String(), 1500))
	}
	return destroyed
}

// testForcedPush forces a push to a real repository in many ways. Without attache many of them destroy the
// colleague's commit; with the git recipe none does.
func (l *lab) testForcedPush(t *testing.T) {
	count := 0
	for way, gone := range l.newPushRace(t).try() {
		if gone != "" {
			count++
			t.Logf("without attache %s lost %s", way, gone)
		}
	}
	if count < 8 {
		t.Errorf("%d ways force a push without attache, want 8: the test proves nothing", count)
	}
	for way, gone := range l.newPushRace(t).try("--config", l.recipe(t, "git")) {
		if gone != "" {
			t.Errorf("%s lost %s", way, gone)
		}
	}
}
