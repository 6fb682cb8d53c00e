package filesource_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy/filesource"
)

// The problems are as printed, without the directory.
func TestCheck(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{name: "valid", files: map[string]string{"a.yaml": "scope: a\n"}},
		{
			name:  "unknown keys",
			files: map[string]string{"a.yaml": "scope: a\nPolicys: []\nfoo_bar: 1\npolicies:\n  - {name: n, position: append, text: t, txt: t}\n"},
			want: []string{
				`a.yaml:2:1: unknown key "Policys": write policies`,
				`a.yaml:3:1: unknown key "foo_bar": the keys here are scope, parent, policies, drop, objectives`,
				`a.yaml:5:42: unknown key "txt": write text`,
			},
		},
		{
			name:  "a key that is a block",
			files: map[string]string{"a.yaml": "|-\n  scope\n: a\n"},
			want: []string{
				"a.yaml: has no scope: add a line such as scope: acme/platform",
				`a.yaml:1:1: unknown key "|-": the keys here are scope, parent, policies, drop, objectives`,
			},
		},
		{
			name: "missing and wrong parts of a policy",
			files: map[string]string{"a.yaml": `scope: a
policies:
  - name: one
  - {position: middle, text: 5}
  - just text
  - {name: "", position: append, text: " "}
  - name: one
    position: append
    text: ~
`},
			want: []string{
				`a.yaml:3:5: a policy here has no position: add it, as in {name: tests, position: append, text: "Write tests."}`,
				`a.yaml:3:5: a policy here has no text: add it, as in {name: tests, position: append, text: "Write tests."}`,
				`a.yaml:4:5: a policy here has no name: add it, as in {name: tests, position: append, text: "Write tests."}`,
				`a.yaml:4:16: position is "middle": make it prepend or append`,
				"a.yaml:4:30: text is a number where text is expected: put it in quotes",
				"a.yaml:5:5: a policy is text where a mapping is expected: write name: and what belongs to it",
				"a.yaml:6:12: name is empty: write it or take it out",
				"a.yaml:6:40: text is empty: write it or take it out",
				`a.yaml:7:11: policy "one" already exists, in line 3: rename one or take it out`,
				"a.yaml:9:11: text is empty: write it or take it out",
			},
		},
		{
			name: "values of the wrong kind",
			files: map[string]string{
				"a.yaml": "scope: 12\n", "b.yaml": "scope: [a]\n", "c.yaml": "scope:\n",
				"d.yaml": "scope: d\npolicies: none\ndrop: {a: b}\nobjectives:\n  - Reduce: costs\n  - true\n  - 1.5\n  - []\n  - .inf\n",
			},
			want: []string{
				"a.yaml:1:8: scope is a number where text is expected: put it in quotes",
				"b.yaml:1:8: scope is a list where text is expected: put it in quotes",
				"c.yaml:1:8: scope is empty: write it or take it out",
				"d.yaml:2:11: policies is text where a list is expected: begin each entry with a dash",
				"d.yaml:3:7: drop is a mapping where a list is expected: begin each entry with a dash",
				"d.yaml:5:5: an objective is a mapping where text is expected: put it in quotes if a colon made it one",
				"d.yaml:6:5: an objective is true or false where text is expected: put it in quotes",
				"d.yaml:7:5: an objective is a number where text is expected: put it in quotes",
				"d.yaml:8:5: an objective is a list where text is expected: put it in quotes",
				"d.yaml:9:5: an objective is a number where text is expected: put it in quotes",
			},
		},
		{
			name: "not a policy file",
			files: map[string]string{
				"a.yaml": "", "b.yaml": "# nothing yet\n", "c.yaml": "text\n", "d.yaml": "- scope: d\n", "e.yaml": "parent: a\n", "f.yaml": "---\n...\n",
			},
			want: []string{
				"a.yaml: is empty: write the scope, or take the file out",
				"b.yaml: is empty: write the scope, or take the file out",
				"c.yaml:1:1: a policy file is text where a mapping is expected: write scope: and what belongs to it",
				"d.yaml:1:1: a policy file is a list where a mapping is expected: write scope: and what belongs to it",
				"e.yaml: has no scope: add a line such as scope: acme/platform",
				"f.yaml: is empty: write the scope, or take the file out",
			},
		},
		{
			name: "not YAML",
			files: map[string]string{
				"a.yaml": "scope: [\n", "b.yaml": "scope: a\nscope: b\n", "c.yaml": "scope: c\n# ü\nparent: ü\xff\n", "d.yaml": "scope: d\n---\nscope: e\n",
				"e.yaml": "\xff\xfes\x00c\x00",
			},
			want: []string{
				"a.yaml:1:8: is not YAML that can be read (sequence end token ']' not found): correct it here or just before",
				`b.yaml:2:1: key "scope" already exists, in line 1: take one of them out`,
				"c.yaml:3:10: is not UTF-8 text: save the file as UTF-8",
				"d.yaml:3:1: a second document begins here: write one document a file",
				"e.yaml:1:1: is not UTF-8 text: save the file as UTF-8",
			},
		},
		{
			name: "unsupported YAML",
			files: map[string]string{
				"a.yaml": "scope: &a x\n", "b.yaml": "scope: &b x\n", "c.yaml": "scope: !!str x\n", "d.yaml": "? scope\n: x\n",
				"e.yaml": "<<: {scope: x}\n", "f.yaml": "%YAML 1.2\n---\nscope: f\n",
			},
			want: refusedIn("a.yaml:1:8", "b.yaml:1:8", "c.yaml:1:8", "d.yaml:1:1", "e.yaml:1:1", "f.yaml:1:1"),
		},
		{
			name: "between files",
			files: map[string]string{
				"a.yaml": "scope: acme\n", "b.yaml": "scope: acme\n", "c.yaml": "scope: team\nparent: acmee\n",
				"d.yaml": "scope: lone\nparent: nothing-like-it\n",
				"e.yaml": "scope: child\nparent: acme\ndrop: [style]\n",
			},
			want: []string{
				`b.yaml:1:8: scope "acme" is also in a.yaml, line 1: rename one or make them one file`,
				`c.yaml:2:9: parent "acmee" is not a scope here: add its file or write "acme"`,
				`d.yaml:2:9: parent "nothing-like-it" is not a scope here: add its file or correct the name`,
				`e.yaml:3:8: warning: no parent has a policy "style" to drop: correct the name or take it out`,
			},
		},
		{
			name: "cycles, each once, and a chain into one",
			files: map[string]string{
				"a.yaml": "scope: x\nparent: b\n", "b.yaml": "scope: b\nparent: c\n", "c.yaml": "scope: c\nparent: d\n", "d.yaml": "scope: d\nparent: b\n",
				"e.yaml": "scope: e\nparent: e\n",
			},
			want: []string{
				`b.yaml:2:9: the parents run in a circle ("b", "c", "d", "b"): take the parent out of one of them`,
				`e.yaml:2:9: the parents run in a circle ("e", "e"): take the parent out of one of them`,
			},
		},
		{
			name: "drops are looked for in every parent, even in a cycle",
			files: map[string]string{
				"a.yaml": "scope: a\npolicies: [{name: n, position: append, text: t}]\n", "b.yaml": "scope: b\nparent: a\n", "c.yaml": "scope: c\nparent: b\ndrop: [n]\n",
				"d.yaml": "scope: d\nparent: d\ndrop: [n]\n",
			},
			want: []string{
				`d.yaml:2:9: the parents run in a circle ("d", "d"): take the parent out of one of them`,
				`d.yaml:3:8: warning: no parent has a policy "n" to drop: correct the name or take it out`,
			},
		},
		{
			name: "invisible characters",
			files: map[string]string{
				"a.yaml": "scope: \"a\\nb\"\n", "b.yaml": "scope: \"b \"\n", "c.yaml": "scope: \"c\\u202e\"\n",
				"d.yaml": "scope: d\nobjectives: [\"e\\x1b[31m\", \"👩\u200d💻\", \"f\\u200b\"]\n",
			},
			want: []string{
				`a.yaml:1:8: scope is "a\nb": leave out line breaks, characters that cannot be seen, and space around it`,
				`b.yaml:1:8: scope is "b ": leave out line breaks, characters that cannot be seen, and space around it`,
				`c.yaml:1:8: scope is "c\u202e": leave out line breaks, characters that cannot be seen, and space around it`,
				"d.yaml:2:14: warning: an objective has characters that cannot be seen, which will be left out: take them out",
				"d.yaml:2:34: warning: an objective has characters that cannot be seen, which will be left out: take them out",
			},
		},
		{
			name: "long words are truncated", files: map[string]string{"a.yaml": "scope: a\n" + strings.Repeat("x", 500) + ": 1\n"},
			want: []string{`a.yaml:2:1: unknown key "` + strings.Repeat("x", 60) + `...": the keys here are scope, parent, policies, drop, objectives`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkDir(t, dirOf(t, test.files), test.want) })
	}
}

// refusedIn returns the problem for unsupported YAML at each place.
func refusedIn(places ...string) []string {
	var want []string
	for _, place := range places {
		want = append(want, place+": anchors, aliases, tags, directives and ? keys are not read: write the value out, in quotes if it is text")
	}
	return want
}

// checkDir compares the problems from Check with want, and checks that Load fails if and only if
// one of them is not a warning.
func checkDir(t *testing.T, dir string, want []string) {
	t.Helper()
	var got []string
	wrong := false
	for _, p := range filesource.Check(dir) {
		text := strings.TrimPrefix(p.String(), dir+string(filepath.Separator))
		got = append(got, strings.ReplaceAll(text, dir+string(filepath.Separator), ""))
		wrong = wrong || !p.Warning
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := filesource.Load(dir); (err != nil) != wrong {
		t.Errorf("Load says %v", err)
	}
}

func TestCheckFiles(t *testing.T) {
	dir := dirOf(t, map[string]string{
		"big.yaml":      "scope: big\nobjectives: [\"" + strings.Repeat("x", 1<<20) + "\"]\n",
		"dir.yaml/file": "", "sub/ok.yaml": "scope: ok\n", "closed/a.yaml": "scope: a\n", "closed.yaml": "scope: closed\n",
	})
	want := []string{
		"big.yaml: is too large: it has more than 1 MiB: divide it into several scopes",
		"dir.yaml: is a directory: take it out, or give it another name",
	}
	if os.Symlink("nowhere", filepath.Join(dir, "lost.yaml")) == nil && runtime.GOOS != "windows" {
		want = append(want, "lost.yaml: cannot be read (no such file or directory): correct its permissions or take it out")
	}
	if runtime.GOOS != "windows" && os.Getuid() > 0 {
		for _, name := range []string{"closed", "closed.yaml"} {
			testkit.Check(t, os.Chmod(filepath.Join(dir, name), 0))
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, name), 0o755) })
		}
		const closed = "cannot be read (permission denied): correct its permissions or take it out"
		want = append([]string{want[0], "closed: " + closed, "closed.yaml: " + closed}, want[1:]...)
	}
	checkDir(t, dir, want)
}

func TestCheckDirectory(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if got := fmt.Sprint(filesource.Check(gone)); got != "["+gone+": there is no such directory: make it or correct the path]" {
		t.Errorf("got %s", got)
	}
	empty := t.TempDir()
	if got := fmt.Sprint(filesource.Check(empty)); got != "["+empty+": warning: there is no policy file (*.yaml) here: write one]" {
		t.Errorf("got %s", got)
	}
}

// Some of these would make the YAML library crash the process or take minutes.
func TestCheckHostileFiles(t *testing.T) {
	const deep = "is nested more than 32 deep"
	const wide = "has more than 1000 keys in one place"
	repeat := func(s string) string { return strings.Repeat(s, 1<<17/len(s)) }
	var manyKeys strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&manyKeys, "k%d: v\n", i)
	}
	tests := map[string]string{
		repeat("["): deep, repeat("{a: "): deep, repeat("- "): deep, "a:\n" + repeat("  - "): deep, repeat("a: "): deep,
		repeat("&a "): "anchors, ", repeat("!!a "): "anchors, ", repeat("? "): "anchors, ",
		manyKeys.String(): wide, "x: {" + strings.ReplaceAll(manyKeys.String(), "\n", ", ") + "}": wide,
		repeat("]"): "", repeat("\""): "", repeat(": "): "", repeat("|\n"): "", repeat("\n"): "is empty",
	}
	for text, says := range tests {
		dir := dirOf(t, map[string]string{"a.yaml": text})
		problems := filesource.Check(dir)
		if len(problems) != 1 || !strings.Contains(problems[0].Text, says) {
			t.Errorf("%.12q...: got %d problems, the first %.200v; want one that says %q", text, len(problems), problems[:min(1, len(problems))], says)
		}
	}
}

// A workspace's file that is empty is not told to write a scope, which it may not have.
func TestParseLooseEmpty(t *testing.T) {
	_, problems := filesource.ParseLoose("p.yaml", []byte("# nothing yet\n"))
	if want := "p.yaml: is empty: write policies or objectives, or take the file out"; len(problems) != 1 || problems[0].String() != want {
		t.Errorf("%v, want %s", problems, want)
	}
}
