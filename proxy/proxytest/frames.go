package proxytest

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A Frame is a row of a table of frames.
type Frame struct {
	Verdict string // what should happen to it; each table defines its own words
	Name    string
	Bytes   []byte // without a newline at the end
}

// Frames reads a table of frames that a script cannot contain. Each line of the file is
//
//	VERDICT | NAME | FRAME
//
// where FRAME is a Go string, `raw` or "quoted", in which <<n*text>> means n times
// text. Frames skips empty lines and lines that begin with #.
func Frames(t testing.TB, file string) []Frame {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []Frame
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		row := strings.SplitN(line, " | ", 3)
		if len(row) != 3 {
			t.Fatalf("%s:%d: %d columns, want 3", file, i+1, len(row))
		}
		text, err := strconv.Unquote(row[2])
		if err != nil {
			t.Fatalf("%s:%d: %s: %v", file, i+1, row[1], err)
		}
		out = append(out, Frame{Verdict: row[0], Name: row[1], Bytes: []byte(expand(text))})
	}
	return out
}

var repetition = regexp.MustCompile(`<<(\d+)\*(.*?)>>`)

// expand replaces <<n*text>> by n times text.
func expand(s string) string {
	return repetition.ReplaceAllStringFunc(s, func(r string) string {
		m := repetition.FindStringSubmatch(r)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}
