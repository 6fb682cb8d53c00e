package textfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

func put(t *testing.T, file, text string, mode fs.FileMode) {
	t.Helper()
	testkit.Check(t, os.WriteFile(file, []byte(text), mode))
	testkit.Check(t, os.Chmod(file, mode))
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	put(t, file, "text", 0o644)
	tests := []struct {
		name, path string
		rules      textfile.Rules
		want       string // the error, "" for none
	}{
		{"valid", file, textfile.Rules{Max: 4}, ""},
		{"one byte too many", file, textfile.Rules{Max: 3}, "is too large: it has more than 3 bytes"},
		{"a directory", dir, textfile.Rules{Max: 4}, "is a directory"},
		{"ours", file, textfile.Rules{Max: 4, Owned: true}, ""},
		{"closed to writers", file, textfile.Rules{Max: 4, Closed: 0o022}, ""},
	}
	if runtime.GOOS != "windows" {
		testkit.Check(t, os.Symlink("file", link))
		tests = append(tests, []struct {
			name, path string
			rules      textfile.Rules
			want       string
		}{
			{"closed to all", file, textfile.Rules{Max: 4, Closed: 0o077}, "is open to others (mode 0644): run chmod 600 " + file},
			{"a link", link, textfile.Rules{Max: 4}, ""},
			{"no link", link, textfile.Rules{Max: 4, NoLink: true}, "is a symbolic link: name the file itself"},
			{"a device", os.DevNull, textfile.Rules{Max: 4}, "is not a regular file"},
		}...)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, info, err := textfile.Read(test.path, test.rules)
			switch {
			case test.want == "" && (err != nil || string(data) != "text" || info.Size() != 4):
				t.Errorf("got %q, %v", data, err)
			case test.want != "" && (fmt.Sprint(err) != test.want || data != nil):
				t.Errorf("got %q, %v; want %s", data, err, test.want)
			}
		})
	}
	if _, _, err := textfile.Read(filepath.Join(dir, "none"), textfile.Rules{Max: 4}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A file in a directory is read in the same way, and a link out of it is not followed.
func TestReadIn(t *testing.T) {
	path := t.TempDir()
	put(t, filepath.Join(path, "file"), "text", 0o644)
	dir, err := os.OpenRoot(path)
	testkit.Check(t, err)
	defer dir.Close()
	links := map[string]string{"within": "file", "out": filepath.Join("..", filepath.Base(path), "file")}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Skip("links are not supported:", err)
		}
	}
	for _, test := range []struct {
		name   string
		noLink bool
		valid  bool
	}{{"file", false, true}, {"file", true, true}, {"within", false, true}, {"within", true, false}, {"out", false, false}} {
		data, _, err := textfile.ReadIn(dir, test.name, textfile.Rules{Max: 4, NoLink: test.noLink})
		if (err == nil) != test.valid || test.valid != (string(data) == "text") {
			t.Errorf("%s, NoLink %t: %q, %v", test.name, test.noLink, data, err)
		}
	}
}

// Replace closes a file to others, replaces a link and not its target, and after an error leaves everything as it was.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	put(t, file, "before", 0o644)
	paths := []string{file, filepath.Join(dir, "new", "file")}
	if err := os.Symlink("target", link); err == nil {
		put(t, filepath.Join(dir, "target"), "target", 0o644)
		paths = append(paths, link)
	}
	for _, path := range paths {
		err := textfile.Replace(path, []byte("text"))
		data, _, readErr := textfile.Read(path, textfile.Rules{Max: 4, Closed: 0o077, NoLink: true})
		if err != nil || readErr != nil || string(data) != "text" {
			t.Errorf("%s: %v; %q, %v", path, err, data, readErr)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "target")); len(paths) == 3 && string(data) != "target" {
		t.Errorf("the target of a link: %q, %v", data, err)
	}
	for _, path := range []string{filepath.Join(dir, "new"), filepath.Join(file, "below")} { // a directory, and below a file
		if err := textfile.Replace(path, nil); err == nil {
			t.Errorf("%s was replaced", path)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}

func TestNearest(t *testing.T) {
	long := strings.Repeat("a", 100)
	for _, test := range []struct {
		word  string
		words []string
		limit int
		want  string
	}{
		{"alow", []string{"deny", "allow"}, 1, "allow"},
		{"Allwo", []string{"allow"}, 1, "allow"},
		{"allxw", []string{"allow"}, 0, ""},
		{"allow", []string{"allow", "allxx"}, 2, "allow"},
		{"alloy", []string{"allxx", "allow", "alloz"}, 2, "allow"},
		{"ba", []string{"ax"}, 1, ""},
		{"ab", []string{"xa"}, 1, ""},
		{"b", []string{"xxxb"}, 2, ""},
		{"xxxb", []string{"b"}, 2, ""},
		{long, []string{long}, 1, long},
		{long, []string{long + "a"}, 1, ""},
		{long + "a", []string{long}, 1, ""},
	} {
		if got := textfile.Nearest(test.word, test.words, test.limit); got != test.want {
			t.Errorf("Nearest(%.10q, %.10q, %d) = %.10q, want %.10q", test.word, test.words, test.limit, got, test.want)
		}
	}
}

func TestParseYAML(t *testing.T) {
	const alias = `begins with "*", so that YAML takes it for an alias, which is not read: put a text in quotes, as in "*", or write the value out`
	const anchors = "anchors, aliases, tags, directives and ? keys are not read: write the value out, in quotes if it is text"
	const escape = `has \x, \u or \U without its 2, 4 or 8 hexadecimal digits: write a path of Windows in single quotes`
	tests := map[string]string{ // to the error, or to the content in one line
		"":                                 "",
		"# c\n":                            "",
		"---\n...\n":                       "",
		"~":                                "",
		"\ufeffa: b":                       "a: b",
		"a: b\na: c":                       "a: b\na: c",
		"{a: [b:c, d]}":                    "{a: [b:c, d]}",
		"a: b\n--- # c\n":                  "a: b",
		"a: b\n---\nc: d":                  "3:1: a second document begins here: write one document a file",
		"---\n# c\n---\n":                  "",
		"---\n# c\n---\na: b":              "4:1: a second document begins here: write one document a file",
		"{a: b c: d, e: f}":                `1:5: a comma is missing before "c": write it, or put the text that begins here in quotes`,
		"{a: b\n  c: d}":                   `1:5: a comma is missing before "c": write it, or put the text that begins here in quotes`,
		"a: [{b: c d: e}]":                 `1:9: a comma is missing before "d": write it, or put the text that begins here in quotes`,
		"{a: b: c}":                        "1:5: has a colon within a text: put the text in quotes",
		"a:: b":                            "a:: b",
		"{a: b c:, d: e}":                  "1:5: has a colon within a text: put the text in quotes",
		"{a: b:, c: d}":                    "1:5: has a colon within a text: put the text in quotes",
		"{a: b], c: d}":                    `1:5: has "]" within a text: take it out, write the other bracket, or put the text in quotes`,
		"{a: [b, c}d]}":                    `1:13: begins with "}": take it out, or put the text in quotes`,
		"{a: '[b]{c}', d: \"e]\"}":         "{a: '[b]{c}', d: \"e]\"}",
		"a: [*]":                           "1:5: " + alias,
		"a: }b":                            `1:4: begins with "}": take it out, or put the text in quotes`,
		", a: b":                           `1:1: begins with ",": take it out, or put the text in quotes`,
		"- a\n  - {b: c}":                  "2:10: has a colon within a text of several lines: put the text in quotes, or correct the indentation of its lines",
		"- a: b\n   - c:\n     - d":        "3:8: has a colon within a text of several lines: put the text in quotes, or correct the indentation of its lines",
		"a: b [c] {d}, e:f % #g":           "a: b [c] {d}, e:f %",
		"a: b\n  c [d]\ne: f":              "a: b c [d]\ne: f",
		"a: > # b\n  - c: d\n":             "a: >\n  - c: d",
		"{a: 'b: c', d: \"e: f\"}":         "{a: 'b: c', d: \"e: f\"}",
		"{a: http://b:1, c: d:e}":          "{a: http://b:1, c: d:e}",
		"a: |\n  {b: c d: e}\n":            "a: |\n  {b: c d: e}",
		"a: b: c":                          "1:4: has a colon within a value: put a text with a colon in quotes, or correct the indentation here or just after",
		"a: \x1b":                          `1:4: has the control character '\x1b': take it out`,
		"# ü\nü: \xff":                     "2:4: is not UTF-8 text: save the file as UTF-8",
		"a:\n\tb: c":                       "2:1: a tab is not for indenting in YAML: write spaces",
		"a: [":                             "1:4: is not YAML that can be read (sequence end token ']' not found): correct it here or just before",
		"log\nlevel: info":                 `1:1: "log" has no colon after it: write one, and its value`,
		"a: 1\nb\n":                        `2:1: "b" has no colon after it: write one, and its value`,
		">short\n":                         `1:1: is not YAML that can be read (invalid header option: "short"): correct it here or just before`,
		"a: >atk_x7k2m4qa_ABCDEFGH\n":      "1:4: is not YAML that can be read (invalid header option: this): correct it here or just before",
		"a: &x b":                          "1:4: " + anchors,
		"a: *x":                            "1:4: " + alias,
		"a: !!str b":                       "1:4: " + anchors,
		"# c\r\na: b # d\r\nc: *x":         "3:4: " + alias,
		"? a\n: b":                         "1:1: " + anchors,
		"a: b\r\nc: \"C:\\Users\\ada\\x\"": "2:4: " + escape,
		`{ü: "ü", c: "\x4g"}`:              "1:13: " + escape,
		"a: \"b\n  c\n  \\xgg\"\nd: '\\x'": "1:4: " + escape,
		`a: "C:\\Users \x41\u0041"`:        `a: "C:\\Users AA"`,
		"<<: {a: b}":                       "1:1: " + anchors,
		"%YAML 1.2\n---\na: b":             "1:1: " + anchors,
		strings.Repeat("[", 60000):         "1:33: is nested more than 32 deep: see whether it is the right file",
	}
	for text, want := range tests {
		content, err := textfile.ParseYAML([]byte(text))
		got := fmt.Sprint(err)
		if err == nil {
			if got = ""; content != nil {
				got = content.String()
			}
		}
		if got != want {
			t.Errorf("%.40q: got %s; want %s", text, got, want)
		}
	}
}

// The limits are those that the errors name, and what has ended does not count.
func TestLimits(t *testing.T) {
	const deep, many = "is nested more than 32 deep: see whether it is the right file", "has more than 1000 keys in one place: see whether it is the right file"
	brackets := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	lists := func(n int) string { return strings.Repeat("- ", n) + "a" }
	mappings := func(n int) (text string) {
		for i := range n {
			text += strings.Repeat(" ", i) + "key:\n"
		}
		return text
	}
	keys := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("k%d: v\n", i+1)
		}
		return text
	}
	for _, test := range []struct{ text, want string }{
		{brackets(32), ""}, {brackets(33), "1:33: " + deep}, {strings.Repeat("- [[a]]\n", 40), ""},
		{lists(32), ""}, {lists(33), "1:65: " + deep}, {"- - - a\n" + strings.Repeat("- a\n- - a\n", 40), ""},
		{mappings(32), ""}, {mappings(33), "33:36: " + deep}, {mappings(20) + mappings(20), ""},
		{keys(1000), ""}, {keys(1001), "1001:6: " + many}, {"a:\n  b: c\n" + keys(999), ""},
	} {
		_, err := textfile.ParseYAML([]byte(test.text))
		if got := fmt.Sprint(err); got != test.want && !(err == nil && test.want == "") {
			t.Errorf("%.40q, %d bytes: %s; want %s", test.text, len(test.text), got, test.want)
		}
	}
}

// Some of these would make the parser crash the process or take minutes.
func TestParseHostileYAML(t *testing.T) {
	var keys strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	units := []string{"[", "{a: ", "- ", "? ", "a: ", ": ", "&a ", "!!x ", "*a ", "a:\n", `"a" `, "---\n", "]", "\"", "|\n", "\n", "  - \n"}
	var texts []string
	for _, unit := range units {
		texts = append(texts, strings.Repeat(unit, 64<<10/len(unit)), "a:\n"+strings.Repeat(unit, 64<<10/len(unit)))
	}
	for _, text := range append(texts, keys.String(), "x: {"+strings.ReplaceAll(keys.String(), "\n", ", ")+"}") {
		if content, err := textfile.ParseYAML([]byte(text)); err == nil && content != nil && strings.ContainsAny(text[:1], "[{?&!*kx") {
			t.Errorf("%.12q... was read", text)
		}
	}
}

// tellsWord reports whether text contains more than MaxQuoted consecutive bytes of a word in data.
func tellsWord(text string, data []byte) bool {
	text = strings.ReplaceAll(text, `"`, " ") // the quotes around words
	for word := range strings.FieldsSeq(string(data)) {
		const n = textfile.MaxQuoted + 1
		for i := n; i <= len(word); i++ {
			if strings.Contains(text, word[i-n:i]) {
				return true
			}
		}
	}
	return false
}

// firstWord returns the first word of data that is not in a comment, between documents or null.
func firstWord(data []byte) string {
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\r", "\n")) {
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.FieldsSeq(line) {
			if !slices.Contains([]string{"---", "...", "~", "null", "Null", "NULL"}, word) {
				return word
			}
		}
	}
	return ""
}

// FuzzParseYAML parses any bytes. An error is one printable line with a place in the file, and
// quotes nothing long enough to be a secret. A file that is read as empty has no words.
func FuzzParseYAML(f *testing.F) {
	for _, seed := range []string{
		"", "a: b", "a: |2+\n  x\n", "a:\n\t- b\n", "\"a\\x\": b\n", "{a: {b: [c]}}", "- - - a", "? a\n: b", "a\nb: c", "\ufeff---\r\na: b\r\n...\r\n",
		"atk_x7k2m4qa_ABCDEFGHABCDEFGHABCDEFGHABCDEFGH\nb: c", ">atk_x7k2m4qa_ABCDEFGHABCDEFGHABCDEFGH", "ABCDEFGHABCDEFGHABCD\nb: c",
		strings.Repeat(`\`, 20) + "\nb: " + strings.Repeat(`\`, 40), ">ABCDEFGHABCDEFGHABCD\n\"ABCDEFGHABCDEFGHABCD\")",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content, err := textfile.ParseYAML(data)
		if err == nil {
			// The lexer ignores a tag that has no line end behind it.
			if word := firstWord(textfile.TrimMark(data)); content == nil && word != "" && bytes.HasSuffix(data, []byte("\n")) {
				t.Errorf("%q is read as empty, with %q", data, word)
			}
			return
		}
		var at *textfile.SyntaxError
		if !errors.As(err, &at) || at.Line < 0 || at.Column < 0 || at.Line > 2+strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n") {
			t.Errorf("%v has no place in %q", err, data)
		}
		if text := err.Error(); strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || tellsWord(text, data) {
			t.Errorf("%q", text)
		}
	})
}
