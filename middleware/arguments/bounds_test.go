package arguments

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/arguments/internal/constraint"
	"github.com/attache-mcp/attache/sessionstate"
)

// At most maxRounds rounds are remembered, and a round that is put twice counts once.
func TestRoundsAreBounded(t *testing.T) {
	var r rounds
	for key := range uint64(maxRounds) {
		r.put(key, map[int]string{0: "first"})
		r.put(key, map[int]string{0: "second"})
	}
	if len(r.values) != maxRounds || len(r.order) != maxRounds || r.values[0][0] != "second" {
		t.Fatalf("%d rounds, %d in order, the first is %v", len(r.values), len(r.order), r.values[0])
	}
	r.put(maxRounds, nil)
	if _, first := r.values[0]; first || len(r.values) != maxRounds || len(r.order) != maxRounds {
		t.Errorf("%d rounds, %d in order, the first is present: %v", len(r.values), len(r.order), first)
	}
}

// A pin creates the objects around its argument that are null or missing.
func TestPinInsideNull(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"a":{"b":null}}`:       `{"a":{"b":{"c":7}}}`,
		`{"a":null}`:             `{"a":{"b":{"c":7}}}`,
		`{}`:                     `{"a":{"b":{"c":7}}}`,
		`{"a":{}}`:               `{"a":{"b":{"c":7}}}`,
		`{"a":{"b":{"c":1}}}`:    `{"a":{"b":{"c":7}}}`,
		`{"a":{"b":1}}`:          "",
		`{"a":{"x":1,"b":null}}`: `{"a":{"x":1,"b":{"c":7}}}`,
	} {
		const before, after = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":`, `}}`
		got := sent(t, pins(t, "a.b.c"), before+arguments+after)
		if want != "" {
			want = before + want + after
		}
		if got != want {
			t.Errorf("%s: got %s", arguments, got)
		}
	}
}

func TestIsAbsolute(t *testing.T) {
	for text, want := range map[string]bool{
		"/a": true, "/": false, "": false, `C:\`: true, "c:/x": true, "C:": false, "C:x": false, "1:/": false, `\\host\x`: true, "a/b": false,
	} {
		if got := isAbsolute(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The value of a fact is a string.
func TestKindsOfFacts(t *testing.T) {
	v := (&value{member: &factMember{text: []byte(`,"p":"x"`), start: len(`,"p":`)}}).constrained()
	if !constraint.Texts.Has(&v) || constraint.Booleans.Has(&v) {
		t.Error("a fact is not a string, or is a boolean")
	}
}

// A path may have a hundred characters.
func TestJudgeMaxLength(t *testing.T) {
	for length, want := range map[string]bool{"99": false, "100": true} {
		schema := `{"type":"object","properties":{"path":{"type":"string","description":"Absolute path of the workspace","maxLength":` + length + `}}}`
		if v := Judge("git_status", []byte(schema), "path"); v.Path != want {
			t.Errorf("maxLength %s: %+v", length, v)
		}
	}
}

// The client chooses the name of a tool. A call in flight must not keep a long one for a next round.
func TestNoRoundsWithLongNames(t *testing.T) {
	for length, want := range map[int]int{10: 1, maxEventTool + 1: 0} {
		b := newBench(t, pin("tenant", "principal.email"))
		b.view = modern("s", &sessionstate.Principal{Email: "ada@example.com"})
		b.handle([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_` + strings.Repeat("x", length) + `","arguments":{"tenant":"x"}}}` + "\n"))
		if n := len(b.ctx.Call.Hooks()); n != want {
			t.Errorf("a name of %d bytes: %d hooks keep it, want %d", length, n, want)
		}
	}
}
