package recipes

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/testkit"
)

// Every recipe has a summary, and a placeholder for each of its parameters.
func TestAll(t *testing.T) {
	for _, r := range All() {
		if !strings.HasSuffix(r.Summary, ".") {
			t.Errorf("%s: the summary %q is no sentence", r.Name, r.Summary)
		}
		values := map[string]string{}
		for _, p := range r.Parameters {
			values[p.Name] = "it's"
			if p.Help == "" || !strings.Contains(r.Text, "{{"+p.Name+"}}") {
				t.Errorf("%s: parameter %q has no help, or no place in the text", r.Name, p.Name)
			}
		}
		body, err := r.Body(values)
		if err != nil || strings.Contains(body, "{{") {
			t.Errorf("%s: %v in\n%s", r.Name, err, body)
		}
		if len(values) > 0 {
			if _, err := r.Body(nil); err == nil || !strings.Contains(err.Error(), "--set "+r.Parameters[0].Name+"=VALUE") {
				t.Errorf("%s without values: %v", r.Name, err)
			}
			if !strings.Contains(body, `'"it''s"'`) {
				t.Errorf("%s: the value is not quoted:\n%s", r.Name, body)
			}
		}
		if _, err := r.Body(map[string]string{"nosuch": "x"}); err == nil {
			t.Errorf("%s takes a parameter it does not have", r.Name)
		}
	}
}

// Add writes under servers, remove takes out only what Add wrote, and both change no other byte.
func TestAddAndRemove(t *testing.T) {
	const body = "match: {package: x}\naccess: {hide: true}\n"
	tests := []struct{ name, before, after string }{
		{"no file", "", "servers:  # attache recipe\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}\n"},
		{"nothing but a comment", "# mine\n", "# mine\nservers:  # attache recipe\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}\n"},
		{"no servers", "# mine\nlog: {level: debug}\n", "# mine\nlog: {level: debug}\nservers:  # attache recipe\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}\n"},
		{"another server", "servers:\n    a:\n        session: {workspace: /a}\n\n# the rest\nlog: {}\n", "servers:\n    a:\n        session: {workspace: /a}\n    git:  # attache recipe\n      match: {package: x}\n      access: {hide: true}\n\n# the rest\nlog: {}\n"},
		{"an empty key", "servers:\nlog: {}\n", "servers:\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}\nlog: {}\n"},
		{"line ends of Windows", "log: {}\r\n", "log: {}\r\nservers:  # attache recipe\r\n  git:  # attache recipe\r\n    match: {package: x}\r\n    access: {hide: true}\r\n"},
		{"no end of the last line", "log: {}", "log: {}\nservers:  # attache recipe\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}"},
		{"a byte order mark", "\ufeffservers:\n  a: {}\n", "\ufeffservers:\n  a: {}\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}\n"},
		{"comments within", "servers:\n  # one\n  a: {}\n  # two\nlog: {}\n", "servers:\n  # one\n  a: {}\n  # two\n  git:  # attache recipe\n    match: {package: x}\n    access: {hide: true}\nlog: {}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			after, err := Add([]byte(test.before), "git", body)
			testkit.Check(t, err)
			if diff := cmp.Diff(test.after, string(after)); diff != "" {
				t.Error(diff)
			}
			for sign, files := range map[string][2][]byte{"+": {[]byte(test.before), after}, "-": {after, []byte(test.before)}} {
				if diff := cmp.Diff(changedLines(sign, test.before, test.after), reported(t, files[0], files[1])); diff != "" {
					t.Errorf("lines with %s: %s", sign, diff)
				}
			}
			if _, err := Add(after, "git", body); err == nil {
				t.Error("it was added twice")
			}
			two, err := Add(after, "sentry", body)
			testkit.Check(t, err)
			for _, name := range []string{"git", "sentry"} {
				if two, err = remove(two, name); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.before, string(two)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// changedLines returns the lines of long that short lacks, each after sign.
func changedLines(sign, short, long string) (all []string) {
	known := strings.Split(strings.ReplaceAll(short, "\r\n", "\n"), "\n")
	for line := range strings.Lines(strings.ReplaceAll(long, "\r\n", "\n")) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(known, line) {
			all = append(all, sign+line)
		}
	}
	return all
}

// reported returns the lines that a command prints for a change of the file.
func reported(t *testing.T, before, after []byte) (all []string) {
	t.Helper()
	var out strings.Builder
	testkit.Check(t, (Command{Process: cli.Process{Stdout: &out}}).report("config.yaml", before, after))
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return all
}

// Files that cannot be edited line by line are refused.
func TestAddRefuses(t *testing.T) {
	for before, want := range map[string]string{
		"servers: {a: {}}\n":                "not written as a block",
		"servers: [a]\n":                    "not a mapping",
		"log: [\n":                          "not valid",
		strings.Repeat("[", 100_000):        "not valid",
		"servers:\n  git: {}\n":             "already exists",
		"policy:\n  dir: |\n    servers:\n": "",
		"\"servers\":\n  a: {}\n":           "not written as a block",
		"{log: {level: info}}\n":            "not written as a block",
	} {
		_, err := Add([]byte(before), "git", "match: {package: x}\n")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", before, err, want)
		}
	}
}

// An entry that the user wrote under the name of a recipe is not removed.
func TestRemoveKeepsEntriesOfTheUser(t *testing.T) {
	for _, content := range []string{"", "log: {}\n", "servers:\n  git:\n    match: {package: x}\n", "servers:\n  git:  # mine\n    match: {package: x}\n"} {
		if _, err := remove([]byte(content), "git"); !errors.Is(err, errAbsent) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// An added recipe is read from the file, and removing it restores the bytes of any file.
func FuzzAddRemove(f *testing.F) {
	f.Add("log: {}\n")
	f.Add("servers:\n  a: {}\n\n# end")
	f.Add("a: |\n  servers:\nservers:\r\n\r\n  b: {c: d}\r\n")
	f.Fuzz(func(t *testing.T, content string) {
		after, err := Add([]byte(content), "git", "match: {package: x}\n")
		if err != nil {
			return
		}
		values, err := decode(after)
		servers, _ := values["servers"].(map[string]any)
		if want := map[string]any{"match": map[string]any{"package": "x"}}; !reflect.DeepEqual(servers["git"], want) {
			t.Fatalf("%q became %q, with %v of %v, %v", content, after, servers["git"], values, err)
		}
		back, err := remove(after, "git")
		if err != nil {
			t.Fatalf("%q became %q: %v", content, after, err)
		}
		if string(back) != content {
			t.Errorf("%q became %q and then %q", content, after, back)
		}
	})
}
