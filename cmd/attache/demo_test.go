package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"
)

// demo returns what the demo prints. It runs in a bubble: a goroutine that the demo
// leaves behind fails the test.
func demo(t *testing.T, colours bool) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if err := runDemo(t.Context(), &out, colours); err != nil {
			t.Error(err)
		}
	})
	return out.String()
}

func TestDemo(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "demo.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := demo(t, false); got != string(want) {
			t.Fatalf("the demo is not that of testdata/demo.txt:\n%s\nif this is meant: go run ./cmd/attache demo > cmd/attache/testdata/demo.txt, and the README",
				firstDifference(got, string(want)))
		}
	}
}

// firstDifference returns the first line that differs.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer than the other"
}

func TestDemoFitsATerminal(t *testing.T) {
	for line := range strings.Lines(demo(t, false)) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > demoWidth || strings.TrimRight(line, " ") != line {
			t.Errorf("%d columns, or spaces at the end: %q", n, line)
		}
	}
}

func TestDemoColours(t *testing.T) {
	plain, coloured := demo(t, false), demo(t, true)
	if strings.Contains(plain, "\x1b") {
		t.Error("there are colours where none are wanted")
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(coloured, ""); got != plain {
		t.Errorf("colours change the text:\n%s", firstDifference(got, plain))
	}
	for line := range strings.Lines(coloured) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Count(line, "\x1b[0m")*2 != strings.Count(line, "\x1b[") {
			t.Errorf("a colour runs over the end of its line: %q", line)
		}
	}
	for _, want := range []string{
		"\x1b[31m-     \"required\":[\"workspace\"],\x1b[0m",
		"\x1b[32m+     \"workspace\":\"/src/shop\"\x1b[0m",
	} {
		if !strings.Contains(coloured, want) {
			t.Errorf("%q is not there", want)
		}
	}
}

func TestDemoCannotWrite(t *testing.T) {
	full := errors.New("disk full")
	if err := runDemo(t.Context(), failingWriter{full}, false); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A demo that is broken off says so, and leaves nothing running.
func TestDemoBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := runDemo(ctx, &bytes.Buffer{}, false); err == nil {
			t.Error("a session that ended before its time is no error")
		}
	})
}

// What is shown without the "+" lines is the one frame, without the "-" lines the
// other, byte for byte.
func TestDemoDiffIsExact(t *testing.T) {
	for _, c := range []struct{ name, before, after, marked string }{
		{"equal", `{"a":1}`, `{"a":1}`, ` {"a":1}`},
		{"only member added", `{"a":{}}`, `{"a":{"b":1}}`, ` {"a":{ + "b":1 } }`},
		{"member appended", `{"a":1}`, `{"a":1,"b":2}`, ` { "a":1 + ,"b":2 }`},
		{"two appended", `{"a":1}`, `{"a":1,"b":2,"c":3}`, ` { "a":1 + ,"b":2, "c":3 }`},
		{"member put in front", `{"a":1}`, `{"b":2,"a":1}`, ` { + "b":2, "a":1 }`},
		{"member put between", `{"a":1,"c":3}`, `{"a":1,"b":2,"c":3}`, ` { "a":1, + "b":2, "c":3 }`},
		{"last member removed", `{"a":1,"b":2}`, `{"a":1}`, ` { "a":1 - ,"b":2 }`},
		{"first member removed", `{"a":1,"b":2}`, `{"b":2}`, ` { - "a":1, "b":2 }`},
		{"only member removed", `{"a":1}`, `{}`, ` { - "a":1 }`},
		{"value changed", `{"a":1,"b":2}`, `{"a":3,"b":2}`, ` { - "a":1, + "a":3, "b":2 }`},
		{"last value changed", `{"b":2,"a":1}`, `{"b":2,"a":"x"}`, ` { "b":2, - "a":1 + "a":"x" }`},
		{"another kind", `{"a":[1]}`, `{"a":{"b":1}}`, ` { - "a":[1] + "a":{"b":1} }`},
		{"last renamed", `{"a":1,"b":2}`, `{"a":1,"c":2}`, ` { "a":1, - "b":2 + "c":2 }`},
		{"element put in front", `[{"t":1}]`, `[{"t":0},{"t":1}]`, ` [ + {"t":0}, {"t":1} ]`},
		{"element edited", `[{"n":"x"},{"n":"y","r":[1]}]`, `[{"n":"x"},{"n":"y"}]`, ` [ {"n":"x"}, { "n":"y" - ,"r":[1] } ]`},
		{"element removed", `[1,2,3]`, `[1,3]`, ` [ 1, - 2, 3 ]`},
		{"escapes and commas", `{"a\"b":"x,\"}]"}`, `{"a\"b":"x,\"}]","c":","}`, ` { "a\"b":"x,\"}]" + ,"c":"," }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := demoDiff([]byte(c.before), []byte(c.after))
			if got := flatten(nodes, demoAdded); got != c.before {
				t.Errorf("before: got  %s\n        want %s", got, c.before)
			}
			if got := flatten(nodes, demoRemoved); got != c.after {
				t.Errorf("after: got  %s\n       want %s", got, c.after)
			}
			var marked strings.Builder
			for _, l := range new(demoLayout).frame(nodes) {
				marked.WriteString(string(rune(l.op)) + " " + l.text)
			}
			squeeze := strings.NewReplacer(" ", "")
			if got, want := squeeze.Replace(marked.String()), squeeze.Replace(c.marked); got != want {
				t.Errorf("shown as %s, want %s", got, want)
			}
		})
	}
}

// flatten joins the texts of the nodes that are not without.
func flatten(nodes []demoNode, without demoOp) string {
	var b strings.Builder
	for _, n := range nodes {
		if n.op != without {
			b.WriteString(n.lead + n.text + flatten(n.items, without) + n.tail)
		}
	}
	return b.String()
}
