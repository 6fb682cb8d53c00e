package filesource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/policy/policytest"
)

func TestSource(t *testing.T) {
	policytest.Run(t, func(t *testing.T, scopes map[string]policy.Scope) policy.Source {
		dir := t.TempDir()
		for _, scope := range scopes {
			name := fmt.Sprintf("%x.yaml", scope.Name) // scope names may have characters that file names may not
			write(t, filepath.Join(dir, name), asYAML(t, scope))
		}
		return filesource.New(dir)
	})
}

// asYAML returns a scope as JSON, which is also unambiguous YAML.
func asYAML(t *testing.T, s policy.Scope) string {
	type written struct {
		Name     string `json:"name"`
		Position string `json:"position"`
		Text     string `json:"text"`
	}
	out := struct {
		Scope      string    `json:"scope"`
		Parent     string    `json:"parent,omitempty"`
		Policies   []written `json:"policies,omitempty"`
		Drop       []string  `json:"drop,omitempty"`
		Objectives []string  `json:"objectives,omitempty"`
	}{Scope: s.Name, Parent: s.Parent, Drop: s.Drop, Objectives: s.Objectives}
	for _, p := range s.Policies {
		out.Policies = append(out.Policies, written{p.Name, string(p.Position), p.Text})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	testkit.Check(t, err)
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o644))
}

// dirOf creates a directory with the given files.
func dirOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func TestLoad(t *testing.T) {
	platform := policy.Scope{
		Name: "acme/platform", Parent: "acme",
		Policies: []policy.Policy{
			{Name: "security-review", Position: policy.Append, Text: "Flag any credential handling for review."},
			{Name: "long", Position: policy.Prepend, Text: "Two\nlines.\n"},
			{Name: "folded", Position: policy.Prepend, Text: "One line."},
		},
		Drop:       []string{"legacy-style"},
		Objectives: []string{"Reduce deployment time to under 5 minutes", "yes"},
	}
	const text = `# the platform team
scope: acme/platform
parent: acme
policies:
  - {name: security-review, position: append, text: "Flag any credential handling for review."}
  - name: long
    position: prepend
    text: |
      Two
      lines.
  - name: folded
    position: prepend
    text: >-
      One
      line.
drop: [legacy-style]
objectives:
  - Reduce deployment time to under 5 minutes # by summer
  - yes
`
	const acme = "scope: acme\n"
	tests := []struct {
		name  string
		files map[string]string
	}{
		{"two files", map[string]string{"a.yaml": acme, "b.yaml": text}},
		{"folders and the extension yml", map[string]string{"x/y/a.yml": acme, "b.YAML": text}},
		{"a byte order mark and a document start", map[string]string{"a.yaml": "\ufeff---\n" + acme, "b.yaml": text}},
		{"Windows line endings", map[string]string{"a.yaml": acme, "b.yaml": strings.ReplaceAll(text, "\n", "\r\n")}},
		{"empty parts", map[string]string{"a.yaml": acme + "parent:\npolicies:\ndrop: []\nobjectives: ~\n", "b.yaml": text}},
		{"other files", map[string]string{
			"a.yaml": acme, "b.yaml": text, "README.md": "x: [", ".hidden.yaml": "x: [", ".git/c.yaml": "x: [", "yaml": "x: [",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := filesource.Load(dirOf(t, test.files))
			testkit.Check(t, err)
			want := map[string]policy.Scope{"acme": {Name: "acme"}, "acme/platform": platform}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// For a ConfigMap, Kubernetes creates a directory of links to files in a folder whose name begins
// with a dot.
func TestLoadFollowsLinksToFiles(t *testing.T) {
	dir := dirOf(t, map[string]string{"..data/acme.yaml": "scope: acme\n"})
	if err := os.Symlink(filepath.Join("..data", "acme.yaml"), filepath.Join(dir, "acme.yaml")); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(t.TempDir(), "policies")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	got, err := filesource.Load(link)
	if err != nil || len(got) != 1 {
		t.Errorf("got %v, %v; want the one scope", got, err)
	}
}

func TestSourceReadsAfresh(t *testing.T) {
	dir := dirOf(t, map[string]string{"a.yaml": "scope: acme\nobjectives: [first]\n"})
	source := filesource.New(dir)
	for _, want := range []string{"first", "second"} {
		got, err := source.Effective(t.Context(), policy.Query{Scope: "acme"})
		if err != nil || len(got.Objectives) != 1 || got.Objectives[0] != want {
			t.Errorf("got %v, %v; want %s", got, err, want)
		}
		write(t, filepath.Join(dir, "a.yaml"), "scope: acme\nobjectives: [second]\n")
	}
}

func TestSourceErrors(t *testing.T) {
	file := filepath.Join(dirOf(t, map[string]string{"a": ""}), "a")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		dir  string
		is   []error
		says string
	}{
		{"no directory", t.Context(), filepath.Join(t.TempDir(), "gone"), []error{policy.ErrUnavailable, fs.ErrNotExist}, "gone: there is no such directory: make it"},
		{"a file", t.Context(), file, []error{policy.ErrUnavailable}, "is not a directory: give the directory"},
		{"no time", over, dirOf(t, map[string]string{"a.yaml": "scope: a\n"}), []error{policy.ErrUnavailable, context.Canceled}, "took too long or was cancelled"},
		{"no files", t.Context(), t.TempDir(), []error{policy.ErrUnknownScope}, "there are none: write one"},
		{"other scopes", t.Context(), dirOf(t, map[string]string{"a.yaml": "scope: a\n"}), []error{policy.ErrUnknownScope}, `"acme"; the scopes are a`},
		{"an invalid file", t.Context(), dirOf(t, map[string]string{"a.yaml": "scope: acme\nparnt: b\nx: y\n"}), []error{policy.ErrInvalid}, `a.yaml:2:1: unknown key "parnt": write parent (and 1 more: see attache policy check)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := filesource.New(test.dir).Effective(test.ctx, policy.Query{Scope: "acme"})
			for _, is := range test.is {
				if !errors.Is(err, is) {
					t.Errorf("got %v, which is not %v", err, is)
				}
			}
			if !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got %v; want it to contain %q", err, test.says)
			}
		})
	}
}

// If a directory becomes invalid, its last policies stay in use, which is reported once for each
// set of problems, and also if it is removed.
func TestKeeping(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	file := filepath.Join(dir, "acme.yaml")
	write(t, file, "scope: acme\nobjectives: [one]\n")
	var told []error
	s := filesource.Keeping(dir, func(err error) { told = append(told, err) })
	want := func(objectives ...string) {
		t.Helper()
		got, err := s.Effective(t.Context(), policy.Query{Scope: "acme"})
		if diff := cmp.Diff(objectives, got.Objectives); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	want("one")
	for _, text := range []string{"scope: acme\nobjectives: two\n", "scope: acme\nobjectives: two\n", "scope: [\n"} {
		write(t, file, text)
		want("one")
	}
	for i, repeat := range []bool{false, true, false} {
		if err := s.Refresh(t.Context(), repeat); err != nil || len(told) != 2+min(i, 1) {
			t.Errorf("%v, told %d times: %v", err, len(told), told)
		}
	}
	told = told[1:]
	write(t, file, "scope: acme\nobjectives: [three]\n")
	want("three")
	moved := dir + ".old"
	testkit.Check(t, os.Rename(dir, moved))
	want("three")
	want("three")
	if len(told) != 4 || told[2] != nil || !errors.Is(told[3], policy.ErrUnavailable) {
		t.Errorf("told %v; want nil, and that the directory is gone", told[2:])
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Effective(canceled, policy.Query{Scope: "acme"}); !errors.Is(err, policy.ErrUnavailable) {
		t.Errorf("after the directory was removed, without time to look: %v", err)
	}
	testkit.Check(t, os.Rename(moved, dir))
	want("three")
	if len(told) != 5 || told[4] != nil {
		t.Errorf("told %v; want nil", told[4:])
	}
}

// A directory is read again if the size or time of a file has changed, or if a file is so new that
// an edit may have changed neither.
func TestKeepingReadsWhatChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "acme.yaml")
	s := filesource.Keeping(filepath.Dir(file), func(err error) { t.Error(err) })
	past, now := time.Now().Add(-time.Hour), time.Now()
	steps := []struct {
		objective string
		at        time.Time
		want      string
	}{
		{"one", past, "one"},
		{"two", past, "one"}, // not detected: no accidental edit of a file keeps its time
		{"two", past.Add(time.Second), "two"},
		{"three", past.Add(time.Second), "three"},
		{"four4", now, "four4"},
		{"five5", now, "five5"},
	}
	for _, step := range steps {
		write(t, file, "scope: acme\nobjectives: ["+step.objective+"]\n")
		testkit.Check(t, os.Chtimes(file, step.at, step.at))
		got, err := s.Effective(t.Context(), policy.Query{Scope: "acme"})
		if err != nil || len(got.Objectives) != 1 || got.Objectives[0] != step.want {
			t.Errorf("%s, changed at %v: got %v, %v; want %s", step.objective, step.at, got.Objectives, err, step.want)
		}
	}
}

// All files of some stores, such as that of Nix, have the same time. An edit there is another file,
// often of the same size.
func TestKeepingReadsAnotherFile(t *testing.T) {
	store, dir := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "a.yaml")
	s := filesource.Keeping(dir, func(err error) { t.Error(err) })
	for _, objective := range []string{"old", "new"} {
		file := filepath.Join(store, objective)
		write(t, file, "scope: a\nobjectives: ["+objective+"]\n")
		testkit.Check(t, os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)))
		_ = os.Remove(link)
		if err := os.Symlink(file, link); err != nil {
			t.Skip(err)
		}
		if got, err := s.Effective(t.Context(), policy.Query{Scope: "a"}); err != nil || !slices.Equal(got.Objectives, []string{objective}) {
			t.Errorf("got %v, %v, want %s", got.Objectives, err, objective)
		}
	}
}

// The total size of the files in a directory is bounded too.
func TestDirectoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 17 {
		write(t, filepath.Join(dir, fmt.Sprint(i, ".yaml")), fmt.Sprintf("scope: s%d\n#%s\n", i, strings.Repeat("x", 1<<20-100)))
	}
	if _, err := filesource.Load(dir); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("Load of 17 MiB of policies: %v", err)
	}
}
