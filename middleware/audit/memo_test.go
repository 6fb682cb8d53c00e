package audit

import (
	"testing"

	"github.com/attache-mcp/attache/middleware"
)

// A note is written as an earlier one only if a record says the same of it.
func TestMemo(t *testing.T) {
	edit := func(change func(*middleware.Note)) *middleware.Note {
		n := &middleware.Note{
			Layer: "arguments", Rule: "arguments[0]", Act: middleware.Edited, Why: "it lacked it",
			Path: []string{"params", "arguments", "a"}, After: []byte(`"acme"`), Source: "principal.tenant",
		}
		change(n)
		return n
	}
	for _, test := range []struct {
		name   string
		change func(*middleware.Note)
		known  bool
	}{
		{"nothing", func(*middleware.Note) {}, true},
		{"a member that no record has", func(n *middleware.Note) { n.DryRun = true }, true},
		{"layer", func(n *middleware.Note) { n.Layer = "rewrite" }, false},
		{"rule", func(n *middleware.Note) { n.Rule = "arguments[1]" }, false},
		{"act", func(n *middleware.Note) { n.Act = middleware.Refused }, false},
		{"why", func(n *middleware.Note) { n.Why = "it had it" }, false},
		{"parent", func(n *middleware.Note) { n.Path = []string{"params", "a"} }, false},
		{"member", func(n *middleware.Note) { n.Path = []string{"params", "arguments", "b"} }, false},
		{"before", func(n *middleware.Note) { n.Before = []byte(`1`) }, false},
		{"after", func(n *middleware.Note) { n.After = []byte(`"evil"`) }, false},
		{"no after", func(n *middleware.Note) { n.After = nil }, false},
		{"source", func(n *middleware.Note) { n.Source = "session.id" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m memo
			first := edit(func(*middleware.Note) {})
			m.keep(first, record("text"))
			first.After[1], first.Path[0] = 'x', "x" // the frame's bytes are used again
			want := ""
			if test.known {
				want = "text"
			}
			if got := m.members(edit(test.change)); string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The memo is bounded, and so is each note in it.
func TestMemoIsBounded(t *testing.T) {
	var m memo
	m.keep(&middleware.Note{Rule: "long", After: make([]byte, maxKnownNote+1)}, nil)
	m.keep(&middleware.Note{Rule: "long", After: make([]byte, maxKnownNote)}, record("x"))
	if len(m.known) > 0 {
		t.Error("a long value is kept")
	}
	m.keep(&middleware.Note{Rule: "a", After: make([]byte, maxKnownNote-1)}, record("x"))
	if len(m.known) != 1 {
		t.Error("a value that is not too long is not kept")
	}
	for i := range 3 * maxKnown {
		m.keep(&middleware.Note{Rule: string(rune('a' + i))}, nil)
	}
	if len(m.known) != maxKnown {
		t.Errorf("%d notes are kept", len(m.known))
	}
}
