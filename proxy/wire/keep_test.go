package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/internal/room"
)

// KeepLine returns a copy of the line, unless nobody will change the line's own bytes.
func TestKeepLine(t *testing.T) {
	lent := room.Borrow(1)
	defer lent.Release()
	for _, c := range []struct {
		name           string
		size           int
		fixed          bool
		lease          Lease
		shared, leased bool
	}{
		{name: "small", size: 100},
		{name: "large", size: 2 * room.Smallest, leased: true},
		{name: "fixed", size: 2 * room.Smallest, fixed: true, shared: true},
		{name: "lent", size: 2 * room.Smallest, lease: lent, shared: true, leased: true},
	} {
		var m Message
		m.Reset(Client, append(bytes.Repeat([]byte("x"), c.size), '\n'))
		m.Fixed, m.Lease = c.fixed, c.lease
		line, lease := m.KeepLine()
		if !bytes.Equal(line, m.Line()) {
			t.Errorf("%s: %d bytes were kept", c.name, len(line))
		}
		if shared := &line[0] == &m.Line()[0]; shared != c.shared || (lease != nil) != c.leased {
			t.Errorf("%s: shared %t, lease %v", c.name, shared, lease)
		}
		if lease != nil {
			lease.Release()
		}
	}
}

// Edits of later messages do not change a large edited line that was kept. A message that was made
// by ResetTo does not release memory that it did not borrow.
func TestKeepLargeEdit(t *testing.T) {
	frame := []byte(strings.Replace(callFrame, "1}}}", `"`+strings.Repeat("x", 2*keepRoom)+`"}}}`, 1))
	var m, other Message
	var s Scanner
	edit := func(m *Message, name string) {
		m.Reset(Client, frame)
		s.Look(m)
		check(t, m.Set(Quote(name), "params", "name"))
	}
	edit(&m, "first")
	line, lease := m.KeepLine()
	if lease == nil || &line[0] != &m.Line()[0] {
		t.Fatal("a large edit was copied")
	}
	want := bytes.Clone(line)
	other.ResetTo(&m)
	m.GiveBack()
	other.GiveBack()
	for _, name := range []string{"second", "third"} {
		edit(&m, name)
		edit(&other, name)
		_ = m.Clone()
	}
	if !bytes.Equal(line, want) {
		t.Error("a line that was kept has changed")
	}
	lease.Release()
}

// A message that is given back has nothing of the memory that it came in.
func TestGiveBack(t *testing.T) {
	lent := room.Borrow(1)
	defer lent.Release()
	var m Message
	m.Reset(Client, []byte("{}\r\n"))
	m.Lease, m.Beside = lent, t
	m.GiveBack()
	if m.Line() != nil || m.Frame() != nil || m.LineEnd() != nil || m.Lease != nil || m.Beside != nil {
		t.Errorf("the message has %q, %v and %v", m.Line(), m.Lease, m.Beside)
	}
}

// A message has its Beside until it is reset. An edit keeps it, and a copy has it too.
func TestBeside(t *testing.T) {
	var m, other Message
	m.Reset(Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"))
	m.Beside = "x"
	new(Scanner).Look(&m)
	for _, edit := range []bool{false, true} {
		if edit {
			check(t, m.Set([]byte("1"), "result", "a"))
		}
		if other.ResetTo(&m); m.Beside != "x" || other.Beside != "x" || m.Clone().Beside != "x" {
			t.Errorf("edited %t: %v, %v, %v", edit, m.Beside, other.Beside, m.Clone().Beside)
		}
	}
	if other.Reset(Server, nil); other.Beside != nil {
		t.Error("the next message has the Beside of the last one")
	}
}

// LacksArgumentNames reports true only if Look searched for the names and the message was not edited
// since.
func TestLacksArgumentNames(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":`
	for _, c := range []struct {
		names     [][]string
		arguments string
		lacks     bool
	}{
		{nil, `{"path":1}`, false},
		{[][]string{{"path"}}, `{}`, true},
		{[][]string{{"path"}}, `{"other":{"path":1}}`, true},
		{[][]string{{"other", "path"}}, `{"a":0,"path":1}`, false},
		{[][]string{{"path"}}, `{"\u0070ath":1}`, false},
		{[][]string{{"options"}, {"path"}}, `{"options":{}}`, false},
	} {
		var m Message
		m.Reset(Client, []byte(call+c.arguments+"}}\n"))
		s := Scanner{ArgumentNames: c.names}
		if s.Look(&m); !m.Plain() || m.LacksArgumentNames() != c.lacks {
			t.Errorf("%s with the names %q: %v, %t", c.arguments, c.names, m.Ambiguity(), m.LacksArgumentNames())
		}
		if err := m.Set([]byte("1"), "params", "arguments", "path"); err != nil || m.LacksArgumentNames() {
			t.Errorf("%s after an edit: %v, %t", c.arguments, err, m.LacksArgumentNames())
		}
		if n := NewMessage(Client, bytes.Clone(m.Frame())); n.LacksArgumentNames() {
			t.Errorf("%s: LacksArgumentNames is true for a message that was not searched", c.arguments)
		}
	}
}
