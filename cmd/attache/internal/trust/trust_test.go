package trust_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy"
)

// workspace returns a workspace with a policy file. Its path has no links.
func workspace(t *testing.T, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Check(t, err)
	write(t, dir, text)
	return dir
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	file := filepath.Join(dir, trust.File)
	testkit.Check(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
}

// trustFile trusts the policy file of a workspace like attache trust.
func trustFile(t *testing.T, s trust.Store, path string) {
	t.Helper()
	w, real, err := trust.Resolve(path)
	testkit.Check(t, err)
	text, err := trust.Read(real)
	if err == nil {
		err = s.Trust(w, real, text, time.Unix(1, 0))
	}
	testkit.Check(t, err)
}

// policyNames returns the names of the policies for a session in a workspace.
func policyNames(t *testing.T, s *trust.Source, path string) string {
	t.Helper()
	e, err := s.Effective(t.Context(), policy.Query{WorkspacePath: path})
	testkit.Check(t, err)
	var names []string
	for _, p := range e.Policies {
		names = append(names, p.Name)
	}
	return strings.Join(append(names, e.Objectives...), " ")
}

const ours = `policies: [{name: ours, position: append, text: "Run make check."}]`

// Each step is a change of a workspace, and the policies that a session has after it.
func TestTrust(t *testing.T) {
	dir := workspace(t, ours)
	store := trust.Store{Dir: filepath.Join(t.TempDir(), "state", "trusted")}
	warnings := 0
	s := &trust.Source{Store: store, Warn: func(string, string) { warnings++ }}
	for _, step := range []struct {
		name     string
		do       func()
		want     string
		warnings int
	}{
		{"nothing is trusted by itself", func() {}, "", 0},
		{"trusted", func() { trustFile(t, store, dir) }, "ours", 0},
		{"another text is not", func() { write(t, dir, strings.Replace(ours, "make check", "rm -rf", 1)) }, "", 1},
		{"which is told once", func() {}, "", 1},
		{"the text that was trusted is again", func() { write(t, dir, ours) }, "ours", 1},
		{"the file by its own name", func() { write(t, dir, ours+"\n"); trustFile(t, store, filepath.Join(dir, trust.File)) }, "ours", 1},
		{"it is gone", func() { os.Remove(filepath.Join(dir, trust.File)) }, "", 1},
		{"and comes back", func() { write(t, dir, ours+"\n") }, "ours", 1},
		{"untrusted", func() { untrust(t, store, dir, true) }, "", 1},
		{"twice", func() { untrust(t, store, dir, false) }, "", 1},
	} {
		step.do()
		if got := policyNames(t, s, dir); got != step.want || warnings != step.warnings {
			t.Errorf("%s: %q and %d warnings, want %q and %d", step.name, got, warnings, step.want, step.warnings)
		}
	}
}

func untrust(t *testing.T, s trust.Store, path string, want bool) {
	t.Helper()
	if got, err := s.Untrust(path); got != want || err != nil {
		t.Errorf("untrust: %v, %v, want %v", got, err, want)
	}
}

// Trust is for a path: a copy, a directory below and the directory above are not trusted.
func TestTrustIsForAPath(t *testing.T) {
	dir := workspace(t, ours)
	store := trust.Store{Dir: t.TempDir()}
	trustFile(t, store, dir)
	s := &trust.Source{Store: store}
	for path, want := range map[string]string{
		dir: "ours", dir + "/": "ours", dir + "/./": "ours",
		workspace(t, ours): "", filepath.Dir(dir): "", dir + "/.attache": "", dir + "x": "",
		"": "", ".": "", "file://" + dir: "", dir + "\x00": "",
	} {
		if got := policyNames(t, s, path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// A link is trusted as long as it leads to the same workspace.
func TestLinks(t *testing.T) {
	one, two, outside := workspace(t, ours), workspace(t, ours), workspace(t, ours)
	link := filepath.Join(t.TempDir(), "link")
	relink := func(to, at string) {
		_ = os.Remove(at)
		if err := os.Symlink(to, at); err != nil {
			t.Skip("no links here:", err)
		}
	}
	relink(one, link)
	store := trust.Store{Dir: t.TempDir()}
	trustFile(t, store, link)
	s := &trust.Source{Store: store}
	if policyNames(t, s, link) != "ours" || policyNames(t, s, one) != "ours" {
		t.Error("a link and what it leads to are not both trusted")
	}
	relink(two, link)
	if got := policyNames(t, s, link); got != "" {
		t.Errorf("a link that leads elsewhere: %q", got)
	}
	relink(filepath.Join(outside, trust.File), filepath.Join(one, trust.File))
	if got := policyNames(t, s, one); got != "" {
		t.Errorf("a file outside of the workspace: %q", got)
	}
}

// The store is readable only by its owner. One that others can write trusts no workspace.
func TestState(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing here")
	}
	dir := workspace(t, ours)
	store := trust.Store{Dir: filepath.Join(t.TempDir(), "trusted")}
	if store.Any() {
		t.Error("something is trusted in a directory that is not there")
	}
	trustFile(t, store, dir)
	files, _ := filepath.Glob(filepath.Join(store.Dir, "*"))
	if len(files) != 1 || !store.Any() {
		t.Fatalf("%v", files)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	s := &trust.Source{Store: store}
	for name, spoil := range map[string]func() error{
		"open to others":         func() error { return os.Chmod(files[0], 0o644) },
		"not a record":           func() error { return os.WriteFile(files[0], []byte("{"), 0o600) },
		"of another workspace":   func() error { return os.Rename(files[0], filepath.Join(store.Dir, strings.Repeat("0", 64)+".json")) },
		"under no record's name": func() error { return os.Rename(files[0], filepath.Join(store.Dir, "new-1")) },
	} {
		testkit.Check(t, spoil())
		if got := policyNames(t, s, dir); got != "" {
			t.Errorf("%s: %q", name, got)
		}
		testkit.Check(t, os.RemoveAll(store.Dir))
		trustFile(t, store, dir)
	}
}

// Concurrent changes lose nothing and leave no incomplete file.
func TestAtOnce(t *testing.T) {
	store := trust.Store{Dir: t.TempDir()}
	shared := workspace(t, ours)
	var all sync.WaitGroup
	for range 8 {
		own := workspace(t, ours)
		all.Go(func() {
			for range 20 {
				trustFile(t, store, own)
				trustFile(t, store, shared)
				if _, err := store.Untrust(shared); err != nil {
					t.Error(err)
				}
				if _, ok := store.Find(own); !ok {
					t.Error("what was trusted is not any more")
				}
			}
		})
	}
	all.Wait()
	trustFile(t, store, shared)
	files, _ := filepath.Glob(filepath.Join(store.Dir, "*"))
	if records, err := store.All(); len(records) != 9 || len(files) != 9 || err != nil {
		t.Errorf("%d records in %d files, %v, want 9 in 9", len(records), len(files), err)
	}
}

// A file outside the workspace is not read.
func TestRead(t *testing.T) {
	if _, err := trust.Read(workspace(t, "#"+strings.Repeat("x", 64<<10))); err == nil {
		t.Error("a file that is too long was read")
	}
	if _, err := trust.Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	dir := t.TempDir()
	testkit.Check(t, os.MkdirAll(filepath.Join(dir, trust.File), 0o700))
	if _, err := trust.Read(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory: %v", err)
	}
}

// A fixedSource always returns the same policies or error.
type fixedSource struct {
	e   policy.Effective
	err error
}

func (f fixedSource) Effective(context.Context, policy.Query) (policy.Effective, error) {
	return f.e, f.err
}

// The policies of a workspace are added to those of the operator, and remove none of them.
func TestJoin(t *testing.T) {
	operators := policy.Effective{
		Policies: []policy.Policy{
			{Name: "first", Position: policy.Prepend, Text: "a"},
			{Name: "last", Position: policy.Append, Text: "b"},
		},
		Objectives: []string{"goal"},
	}
	const text = `policies:
  - {name: after, position: append, text: x}
  - {name: before, position: prepend, text: y}
  - {name: last, position: prepend, text: "not this one"}
objectives: [" goal ", more]`
	down := errors.New("down")
	for _, test := range []struct {
		name     string
		text     string
		next     policy.Source
		max      int
		want     string
		err      error
		warnings int
	}{
		{"between the operator's", text, fixedSource{e: operators}, 0, "first before after last goal more", nil, 0},
		{"before what the operator appends", text, fixedSource{e: policy.Effective{Policies: operators.Policies[1:]}}, 0, "before after last  goal  more", nil, 0},
		{"alone", text, nil, 0, "before last after  goal  more", nil, 0},
		{"not in the place of a source that failed", text, fixedSource{err: down}, 0, "", down, 0},
		{"not where it would crowd others out", text, fixedSource{e: operators}, 300, "first last goal", nil, 1},
		{"with a scope", "scope: acme\n" + text, fixedSource{e: operators}, 0, "first last goal", nil, 1},
		{"with a drop", "drop: [first]\n" + text, fixedSource{e: operators}, 0, "first last goal", nil, 1},
		{"not YAML", "{", fixedSource{e: operators}, 0, "first last goal", nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := workspace(t, test.text)
			store := trust.Store{Dir: t.TempDir()}
			trustFile(t, store, dir)
			warnings := 0
			s := &trust.Source{Next: test.next, Store: store, MaxBytes: test.max, Warn: func(string, string) { warnings++ }}
			e, err := s.Effective(t.Context(), policy.Query{WorkspacePath: dir})
			if err != test.err {
				t.Fatal(err)
			}
			var names []string
			for _, p := range e.Policies {
				names = append(names, p.Name)
				if p.Name == "last" && test.next != nil && p.Text != "b" {
					t.Errorf("the operator's policy was replaced: %v", p)
				}
			}
			if got := strings.Join(append(names, e.Objectives...), " "); got != test.want || warnings != test.warnings {
				t.Errorf("%q and %d warnings, want %q and %d", got, warnings, test.want, test.warnings)
			}
		})
	}
	if len(operators.Policies) != 2 || len(operators.Objectives) != 1 {
		t.Error("what the operator said was changed")
	}
}
