package audit

import (
	"testing"

	"github.com/attache-mcp/attache/middleware"
)

// The memo returns the members of an earlier note only if the record would be the same.
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
		found  bool
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
			m.add(first, record("text"))
			first.After[1], first.Path[0] = 'x', "x" // the frame's memory is reused
			want := ""
			if test.found {
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
	m.add(&middleware.Note{Rule: "long", After: make([]byte, maxMemoItemBytes+1)}, nil)
	m.add(&middleware.Note{Rule: "long", After: make([]byte, maxMemoItemBytes)}, record("x"))
	if len(m.items) > 0 {
		t.Error("a long value is kept")
	}
	m.add(&middleware.Note{Rule: "a", After: make([]byte, maxMemoItemBytes-1)}, record("x"))
	if len(m.items) != 1 {
		t.Error("a value that is not too long is not kept")
	}
	m.add(&middleware.Note{Rule: "a", After: []byte(`2`)}, record("y"))
	if len(m.items) != 1 {
		t.Error("another note of the same rule does not replace the first one")
	}
	for i := range 3 * maxMemoItems {
		m.add(&middleware.Note{Rule: string(rune('a' + i))}, nil)
	}
	if len(m.items) != maxMemoItems {
		t.Errorf("%d notes are kept", len(m.items))
	}
}
