package status

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Notes become counts and events, which contain no values of a call.
func TestRecorder(t *testing.T) {
	r := NewRecorder(7, "git", func(report *Report) { report.Session = "s1" })
	path := []string{"params", "arguments", "path"}
	for _, n := range []middleware.Note{
		{Layer: "arguments", Act: middleware.Edited, Path: path, After: []byte(`"/secret"`), Source: "session.workspace.path from --workspace"},
		{Layer: "arguments", Act: middleware.Edited, Path: path, Pinned: true, After: []byte(`"/secret"`), Source: "principal.tenant"},
		{Layer: "rewrite", Act: middleware.Edited, Path: path},
		{Layer: "capture", Act: middleware.Edited, Path: []string{"params", "_meta", "io.github.attache-mcp/apiKey"}, Before: []byte(`"[hidden]"`)},
		{Layer: "briefing", Rule: "policy", Act: middleware.Edited, After: []byte(`{}`)},
		{Layer: "briefing", Rule: "policy", Act: middleware.Edited, Path: path},
		{Layer: "briefing", Rule: "briefing.structured", Act: middleware.Edited, Path: path, After: []byte(`{}`)},
		{Layer: "access", Act: middleware.Refused, Why: "records:read is required"},
		{Layer: "access", Act: middleware.Allowed},
		{Layer: "arguments", Act: middleware.Edited, DryRun: true},
	} {
		r.listener("git_push")(nil, n)
	}
	log := logging.New(cli.Process{Stderr: io.Discard}, config.DefaultSettings(""), io.Discard)
	logging.Tee(log, r.Log)
	log = log.With("a", 1).WithGroup("g")
	log.Info("not kept")
	for i := range maxRecent + 5 {
		log.Warn("warning " + strconv.Itoa(i) + strings.Repeat("x", 400))
	}
	got := r.snapshot()
	if got.Filled != 1 || got.Pinned != 1 || got.Rewritten != 1 || got.Briefed != 1 || got.Refused != 1 || got.Session != "s1" {
		t.Errorf("%+v", got)
	}
	want := []string{"filled path of git_push with session.workspace.path from --workspace", "pinned path of git_push with principal.tenant", "set path of git_push", "cut out io.github.attache-mcp/apiKey of git_push", "briefed the model by git_push", "refused git_push by access: records:read is required"}
	for i, e := range got.Edits {
		if e.Text != want[i] {
			t.Errorf("event %d is %q, want %q", i, e.Text, want[i])
		}
	}
	if len(got.Warnings) != maxRecent || !strings.HasPrefix(got.Warnings[0].Text, "warning 5x") || len(got.Warnings[0].Text) > maxText+len("…") {
		t.Errorf("warnings %+v", got.Warnings)
	}
}

// A front logs one warning again and again, for each of its sessions. That hides no other warning, and
// shows of which server it is.
func TestWarningsOfServers(t *testing.T) {
	r := NewRecorder(7, "git, sentry", nil)
	log := logging.New(cli.Process{Stderr: io.Discard}, config.DefaultSettings(""), io.Discard)
	logging.Tee(log, r.Log)
	log.Warn("the database is away")
	for range maxRecent {
		for _, server := range []string{"git", "sentry"} {
			logging.ForServer(log, server).With("client", "7").Warn("the server has ended")
		}
	}
	var got []string
	for _, e := range r.snapshot().Warnings {
		got = append(got, e.Text)
	}
	if want := []string{"the database is away", "git: the server has ended", "sentry: the server has ended"}; !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// A briefing in the reply to initialize is counted too. Only tool calls are counted as calls.
func TestLayerListens(t *testing.T) {
	for method, calls := range map[string]int{"initialize": 0, "server/discover": 0, "tasks/result": 0, "tasks/get": 0, "tools/call": 1} {
		r := NewRecorder(7, "git", nil)
		handler := r.Layer().Wrap(func(ctx context.Context, _ *wire.Message) error {
			middleware.CallFrom(ctx).Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Edited, After: []byte(`""`)})
			return nil
		})
		m := wire.NewRequest(wire.Client, []byte("1"), method, nil)
		ctx := &relayed.Context{Context: t.Context(), Call: &relayed.Call{}}
		testkit.Check(t, handler(ctx, m))
		if got := r.snapshot(); got.Briefed != 1 || got.Calls != calls || got.Edits[0].Text != "briefed the model" {
			t.Errorf("%s: briefed %d, calls %d, edits %v", method, got.Briefed, got.Calls, got.Edits)
		}
	}
}

// A report is written a second after a change, and removed when the process stops.
func TestPublish(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "attache", "run")
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(os.Getpid(), "git", nil)
		stop := r.Publish(dir)
		if reports, err := Running(dir); err != nil || len(reports) != 0 {
			t.Errorf("before the first second: %+v, %v", reports, err)
		}
		r.call()
		time.Sleep(delay)
		synctest.Wait()
		reports, err := Running(dir)
		if err != nil || len(reports) != 1 || reports[0].Calls != 1 || reports[0].Server != "git" {
			t.Errorf("%+v, %v", reports, err)
		}
		stop()
		r.call()
		if entries, err := os.ReadDir(state); err != nil || len(entries) != 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	})
}

// Await waits for a report that is not written yet.
func TestAwait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		stop := NewRecorder(os.Getpid(), "git", nil).Publish(dir)
		defer stop()
		reports, err := Await([]string{dir}, func(r Report) bool { return r.Server == "git" })
		if err != nil || len(reports) != 1 || time.Since(begin) > delay+delay/5 {
			t.Errorf("%+v, %v, after %v", reports, err, time.Since(begin))
		}
		reports, err = Await([]string{dir}, func(r Report) bool { return r.Server == "other" })
		if err != nil || len(reports) != 1 || time.Since(begin) > 3*delay {
			t.Errorf("nobody to wait for: %+v, %v, after %v", reports, err, time.Since(begin))
		}
	})
}

// A shell has XDG_RUNTIME_DIR, and clients that start their servers with few variables do not pass it on:
// the reports are in different directories.
func TestDirs(t *testing.T) {
	shell := cli.Process{StateDir: t.TempDir(), Env: []string{"XDG_RUNTIME_DIR=" + t.TempDir()}}
	server := cli.Process{StateDir: shell.StateDir}
	synctest.Test(t, func(t *testing.T) {
		for name, p := range map[string]cli.Process{"git": shell, "files": server} {
			defer NewRecorder(os.Getpid(), name, nil).Publish(Dir(p))()
		}
		time.Sleep(delay)
		synctest.Wait()
		if reports, err := Running(Dirs(shell)...); err != nil || len(reports) != 2 {
			t.Errorf("%+v, %v", reports, err)
		}
		if reports, err := Running(Dirs(server)...); err != nil || len(reports) != 1 {
			t.Errorf("without the variable: %+v, %v", reports, err)
		}
	})
}

// The PID of a process in another container may be that of any process here.
func TestOtherNamespace(t *testing.T) {
	if pidNamespace() == "" {
		t.Skip("the system has no PID namespaces")
	}
	for namespace, want := range map[string]bool{pidNamespace(): true, "pid:[1]": false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			defer NewRecorder(os.Getpid(), "git", func(r *Report) { r.Restart, r.Namespace = true, namespace }).Publish(dir)()
			time.Sleep(delay)
			synctest.Wait()
			if reports, err := Running(dir); err != nil || len(reports) != 1 || reports[0].Restart != want {
				t.Errorf("%s: %+v, %v", namespace, reports, err)
			}
		})
	}
}

// Running removes the files of killed processes. Those here never held their lock.
func TestRunningRemovesTheDead(t *testing.T) {
	dir := t.TempDir()
	leaveDead(t, dir)
	if reports, err := Running(dir); err != nil || len(reports) != 0 {
		t.Errorf("%+v, %v", reports, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if reports, err := Running(filepath.Join(dir, "none")); err != nil || reports != nil {
		t.Errorf("%+v, %v", reports, err)
	}
}

// leaveDead writes the files of three processes that were killed at different times.
func leaveDead(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"1.json", "2.lock", "3.json.new", "3.lock"} {
		testkit.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(`{"pid":1}`), 0o600))
	}
}

// Clients kill attache, and few people ever run attache status, so the next attache removes the files of killed
// ones.
func TestPublishRemovesTheDead(t *testing.T) {
	dir := t.TempDir()
	leaveDead(t, dir)
	synctest.Test(t, func(t *testing.T) {
		stop := NewRecorder(os.Getpid(), "git", nil).Publish(dir)
		defer stop()
		time.Sleep(delay)
		synctest.Wait()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	})
}

// Another process may remove a lock file after it was opened and before it is locked.
func TestLockOnDisk(t *testing.T) {
	p := &publisher{path: filepath.Join(t.TempDir(), "1.json")}
	p.lock = flock.New(strings.TrimSuffix(p.path, ".json") + ".lock")
	if !p.locked() || !p.onDisk() {
		t.Fatal("not locked, though nobody else is there")
	}
	testkit.Check(t, os.Remove(p.lock.Path()))
	if p.onDisk() {
		t.Error("the file that was removed counts as there")
	}
	p.stop()
}

func TestRestarts(t *testing.T) {
	alone, front := Report{Server: "git, or so", Restart: true}, Report{Server: "git, files, mail", Restart: true, Front: &Front{Fixed: []string{"mail"}}}
	for _, c := range []struct {
		of   Report
		name string
		want bool
	}{
		{alone, "git, or so", true}, {alone, "git", false},
		{front, "git", true}, {front, "files", true}, {front, "git, files, mail", true}, {front, "fil", false}, {front, "mail", false},
		{Report{Server: "git"}, "git", false},
	} {
		if got := c.of.Restarts(c.name); got != c.want {
			t.Errorf("attache restart --server %q of %q: got %t", c.name, c.of.Server, got)
		}
	}
	if got := []string{alone.Restartable(), front.Restartable()}; !slices.Equal(got, []string{"git, or so", "git, files"}) {
		t.Errorf("got %q", got)
	}
}

// The specification of XDG_RUNTIME_DIR demands an absolute path and a directory of this user. "su" without "-" and
// "sudo -E" keep that of another user, and WSL can name a directory that does not exist.
func TestDir(t *testing.T) {
	state, own := t.TempDir(), t.TempDir()
	inState := filepath.Join(state, "attache", "run")
	want := map[string]string{"": inState, "run": inState, own: filepath.Join(own, "attache"), filepath.Join(own, "missing"): inState}
	if other := t.TempDir(); os.Chown(other, 12345, 12345) == nil { // as root
		want[other] = inState
	}
	for dir, want := range want {
		if got := Dir(cli.Process{Env: []string{"XDG_RUNTIME_DIR=" + dir}, StateDir: state}); got != want {
			t.Errorf("XDG_RUNTIME_DIR=%s: got %s, want %s", dir, got, want)
		}
	}
}
