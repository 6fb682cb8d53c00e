package main

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/record"
)

// A call that waited is counted where the client made it, and so are two that are
// alike and those of an array.
func TestInOrder(t *testing.T) {
	s := &record.Session{Events: []record.Event{
		{At: record.ClientIn, Line: []byte("{1}\n")},
		{At: record.ServerIn, Line: []byte("{3}\n")},
		{At: record.ClientIn, Line: []byte("{2}\r\n")},
		{At: record.ClientIn, Line: []byte("[{4},{5}]\n")},
		{At: record.ClientIn, Line: []byte("{2}\n")},
		{At: record.ClientIn, Line: []byte("{3}\n")},
	}}
	var seen []*trail
	for _, frame := range []string{"{3}", "{2}", "{1}", "{4}", "{5}", "{2}", "{6}"} {
		seen = append(seen, &trail{frames: [][]byte{[]byte(frame)}})
	}
	inOrder(seen, s)
	var got []string
	for _, x := range seen {
		got = append(got, string(x.frames[0]))
	}
	if text := strings.Join(got, ""); text != "{1}{2}{4}{5}{2}{3}{6}" {
		t.Errorf("got %s", text)
	}
}

// What a peer took for a name moves no cursor; colours are ours.
func TestShownLines(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\x1b[1;31mred\x1b[0m\n": "plain\n\x1b[1;31mred\x1b[0m\n",
		"a\x00b\x07\u009b2Jc\n":         "a\uFFFDb\uFFFD\uFFFD2Jc\n",
		"\x1b[2J\x1b]0;x\x07\x1b[31":    "\uFFFD[2J\uFFFD]0;x\uFFFD\uFFFD[31",
	} {
		if got := shownLines(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
