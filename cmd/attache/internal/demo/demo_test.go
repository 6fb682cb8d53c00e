package demo

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

	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/internal/testkit"
)

// demo returns the output of the demo. It runs in a synctest bubble, so that a goroutine that does not end
// fails the test.
func demo(t *testing.T, colours bool) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if err := Run(t.Context(), &out, colours); err != nil {
			t.Error(err)
		}
	})
	return out.String()
}

func TestDemo(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "demo.txt"))
	testkit.Check(t, err)
	for range 5 {
		if got := demo(t, false); got != string(want) {
			t.Fatalf("the demo is not that of testdata/demo.txt:\n%s\nif this is meant: go run ./cmd/attache demo > cmd/attache/internal/demo/testdata/demo.txt, and the README",
				firstDifference(got, string(want)))
		}
	}
}

// If the reader of the output exits, the process ends when it writes. At that time there is no temporary
// directory of the demo.
func TestNoDirectoryIsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := Run(t.Context(), writer(func(text []byte) {
		if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || left != nil {
			t.Errorf("at a write there are %q, %v", left, err)
		}
	}), false); err != nil {
		t.Error(err)
	}
}

type writer func([]byte)

func (w writer) Write(text []byte) (int, error) { w(text); return len(text), nil }

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
		if n := utf8.RuneCountInString(line); n > term.Width || strings.TrimRight(line, " ") != line {
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
		"\x1b[31m-           \"required\": [\x1b[0m",
		"\x1b[32m+       \"workspace\": \"/src/shop\"\x1b[0m",
	} {
		if !strings.Contains(coloured, want) {
			t.Errorf("%q is not there", want)
		}
	}
}

func TestDemoCannotWrite(t *testing.T) {
	full := errors.New("disk full")
	if err := Run(t.Context(), failingWriter{full}, false); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A demo that is cancelled returns an error, and all goroutines end.
func TestDemoCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Run(ctx, &bytes.Buffer{}, false); err == nil {
			t.Error("a session that ended before its time is no error")
		}
	})
}
