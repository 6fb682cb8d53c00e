package session

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

// TestWatch changes files in the ways that editors, and Kubernetes, do.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	write := func(name, text string) {
		t.Helper()
		attachetest.WriteFile(t, at(name), text)
	}
	do := func(err error) {
		t.Helper()
		check(t, err)
	}
	do(os.MkdirAll(at("policies/deep"), 0o700))
	do(os.MkdirAll(at("v1"), 0o700))
	do(os.MkdirAll(at("v2"), 0o700))
	do(os.MkdirAll(at("dotfiles"), 0o700))
	write("config.yaml", "a")
	write("policies/deep/one.yaml", "a")
	write("v1/linked.yaml", "a")
	write("v2/linked.yaml", "ab")
	do(os.Symlink("v1", at("data")))
	write("dotfiles/own.yaml", "a")
	do(os.Symlink("dotfiles/own.yaml", at("own.yaml")))
	write("dotfiles/json-1", "a")
	do(os.Symlink("dotfiles/json-1", at("own.json")))

	changed := make(chan struct{}, 100)
	files := func() []string {
		return []string{at("config.yaml"), at("policies"), at("data/linked.yaml"), at("own.yaml"), at("own.json"), at("later.yaml")}
	}
	w, err := watch(files, fingerprint(files()), func(string) { changed <- struct{}{} })
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer w.close()
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"written in place", func() { write("config.yaml", "bc") }},
		{"replaced", func() { write("config.yaml.tmp", "def"); do(os.Rename(at("config.yaml.tmp"), at("config.yaml"))) }},
		{"removed", func() { do(os.Remove(at("config.yaml"))) }},
		{"made again", func() { write("config.yaml", "g") }},
		{"appears", func() { write("later.yaml", "a") }},
		{"below a directory", func() { write("policies/deep/one.yaml", "bc") }},
		{"in a new directory", func() { do(os.MkdirAll(at("policies/new"), 0o700)); write("policies/new/two.yaml", "a") }},
		{"opened to others", func() { do(os.Chmod(at("config.yaml"), 0o644)) }},
		{"behind a link", func() { write("dotfiles/own.yaml", "bc") }},
		{"replaced behind a link", func() { write("dotfiles/tmp", "def"); do(os.Rename(at("dotfiles/tmp"), at("dotfiles/own.yaml"))) }},
		{"then written in place", func() { write("dotfiles/own.yaml", "ghij") }},
		{"behind a link with another name", func() { write("dotfiles/json-1", "bc") }},
		{"a link that is turned", func() { do(os.Symlink("v2", at("turned"))); do(os.Rename(at("turned"), at("data"))) }},
	} {
		if runtime.GOOS == "windows" && (step.name == "opened to others" || step.name == "a link that is turned") {
			continue // it has no modes, and few may make links
		}
		write("unrelated", step.name) // this must not hide what counts
		step.do()
		select {
		case <-changed:
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s: not noticed", step.name)
		}
	}
}

// The file behind a link is watched, but not its directory, which may have very many files, as /nix/store does.
func TestWatchNoOtherDirectory(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "store", "config.yaml")
	check(t, os.Mkdir(filepath.Dir(target), 0o700))
	attachetest.WriteFile(t, target, "a")
	check(t, os.Symlink(target, link))
	events, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer events.Close()
	w := &watcher{events: events, files: func() []string { return []string{link} }}
	w.follow()
	for _, path := range events.WatchList() {
		if filepath.Base(path) == "store" {
			t.Errorf("%s is watched", path)
		}
	}
}

// A file that the changed configuration names for the first time may have changed since it was read, and before it was
// watched. So the files are checked again.
func TestWatchNewFile(t *testing.T) {
	t.Parallel()
	config, other := filepath.Join(t.TempDir(), "config.yaml"), filepath.Join(t.TempDir(), "other.yaml")
	attachetest.WriteFile(t, config, "a")
	attachetest.WriteFile(t, other, "a")
	var named atomic.Bool
	files := func() []string {
		if named.Load() {
			return []string{config, other}
		}
		return []string{config}
	}
	read := make(chan struct{}, 100)
	w, err := watch(files, "", func(string) {
		named.Store(true)
		read <- struct{}{}
	})
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer w.close()
	for _, step := range []string{"the configuration", "the files again", "the new file"} {
		if step == "the new file" {
			attachetest.WriteFile(t, other, "bc")
		}
		select {
		case <-read:
		case <-time.After(5 * time.Minute):
			t.Fatalf("not read: %s", step)
		}
	}
}

// A file in the same directory that is written all the time, such as the audit, does not hide a
// change.
func TestWatchBesideABusyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, busy := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "audit.jsonl")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(config, "a")
	changed := make(chan struct{}, 100)
	w, err := watch(func() []string { return []string{config} }, fingerprint([]string{config}), func(string) { changed <- struct{}{} })
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer w.close()
	write(config, "changed")
	for end := time.Now().Add(5 * time.Minute); ; write(busy, time.Now().String()) {
		select {
		case <-changed:
			return
		default:
		}
		if time.Now().After(end) {
			t.Fatal("not noticed")
		}
	}
}

// A write to another file, such as the audit, does not delay the reload of a changed configuration.
func TestWatchConcerns(t *testing.T) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer events.Close()
	w := &watcher{events: events, files: func() []string {
		return []string{"/etc/attache/config.json", "/run/secrets/key", "/etc/attache/policies"}
	}}
	for _, c := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"/etc/attache/audit.jsonl", fsnotify.Write, false},
		{"/etc/attache/audit.jsonl", fsnotify.Create, true}, // such as the ..data of Kubernetes
		{"/etc/attache/audit.jsonl", fsnotify.Write | fsnotify.Chmod, true},
		{"/etc/attache/config.json", fsnotify.Write, true},
		{"./etc/../run/secrets/key", fsnotify.Write, true},
		{"/etc/attache/policies/deep/one.yaml", fsnotify.Write, true},
		{"/etc/attache/policies/deep/one.yml", fsnotify.Write, true},
		{"/etc/attache/policies/notes.txt", fsnotify.Write, false},
	} {
		if got := w.concerns(fsnotify.Event{Name: c.name, Op: c.op}); got != c.want {
			t.Errorf("%s of %s: %v, want %v", c.op, c.name, got, c.want)
		}
	}
}

// A change of a file that is not configured does not cause a reload.
func TestWatchIgnoresOtherFiles(t *testing.T) {
	dir := t.TempDir()
	files := []string{dir, filepath.Join(dir, "config.json")}
	before := fingerprint(files)
	for name, counts := range map[string]bool{"notes.txt": false, "config.yaml.swp": false, "one.yaml": true, "config.json": true} {
		attachetest.WriteFile(t, filepath.Join(dir, name), "")
		after := fingerprint(files)
		if changed := after != before; changed != counts {
			t.Errorf("%s changes the fingerprint: %v\n%s\n%s", name, changed, before, after)
		}
		before = after
	}
}

// A file that is written in place is read only when two checks have found the same state.
func TestSettling(t *testing.T) {
	s := settler{last: "a"}
	for i, step := range []struct {
		now            string
		changed, again bool
	}{
		{"a", false, false}, {"half", false, true}, {"b", false, true}, {"b", true, false}, {"b", false, false},
		{"half", false, true}, {"b", false, false}, {"half", false, true}, {"c", false, true}, {"d", false, true}, {"d", true, false},
	} {
		if changed, again := s.look(step.now); changed != step.changed || again != step.again {
			t.Errorf("%d: %q: %v, %v; want %v, %v", i, step.now, changed, again, step.changed, step.again)
		}
	}
}
