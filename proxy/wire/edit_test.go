package wire

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// An editCase is a case of edits.txt.
type editCase struct {
	name          string
	ops           []string
	peer          Peer
	before, after string
}

func editCases(t *testing.T) (cases []editCase) {
	data, err := os.ReadFile("testdata/edits.txt")
	check(t, err)
	for _, block := range strings.Split(string(data), "\n== ")[1:] {
		lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
		c := editCase{name: lines[0]}
		for _, l := range lines[1:] {
			switch {
			case strings.HasPrefix(l, "< "):
				c.peer, c.before = editLine(l[2:])
			case strings.HasPrefix(l, "> "):
				_, c.after = editLine(l[2:])
			default:
				c.ops = append(c.ops, l)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// editLine parses the peer and the escaped line end of a line.
func editLine(s string) (Peer, string) {
	s, server := strings.CutPrefix(s, "server ")
	for written, end := range map[string]string{`}\n`: "}\n", ` \n`: " \n", `\r\n`: "\r\n"} {
		if cut, ok := strings.CutSuffix(s, written); ok {
			s = cut + end
			break
		}
	}
	if server {
		return Server, s
	}
	return Client, s
}

// edit performs one operation of edits.txt.
func edit(t *testing.T, m *Message, op string) error {
	verb, rest, _ := strings.Cut(op, " ")
	d := json.NewDecoder(strings.NewReader(rest))
	var first, value json.RawMessage
	if err := d.Decode(&first); err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	if verb != "delete" {
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
	}
	var keys []string
	if verb != "splice" {
		if err := json.Unmarshal(first, &keys); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
	}
	switch verb {
	case "set":
		return m.Set(value, keys...)
	case "delete":
		return m.Delete(keys...)
	case "prepend":
		return m.Prepend(value, keys...)
	case "drop":
		var drop []int
		json.Unmarshal(value, &drop)
		i := -1
		return m.Apply(RemoveElements(m.Get(keys...), func(Value) bool {
			i++
			return slices.Contains(drop, i)
		})...)
	case "dropmembers":
		var drop []string
		json.Unmarshal(value, &drop)
		return m.Apply(RemoveMembers(m.Get(keys...), func(m Member) bool { return slices.Contains(drop, m.Key.Text()) })...)
	case "splice":
		var at [2]int
		var text string
		json.Unmarshal(first, &at)
		json.Unmarshal(value, &text)
		return m.Apply(Splice{at[0], at[1], []byte(text)})
	}
	t.Fatalf("no operation %q", verb)
	return nil
}

var editErrors = map[string]error{"": nil, "shape": ErrShape, "notplain": ErrNotPlain, "toolarge": ErrTooLarge}

func lookAs(peer Peer, line []byte) *Message {
	if peer == Client {
		return look(line)
	}
	var m Message
	m.Reset(Server, line)
	m.LookEnvelope()
	return &m
}

func TestEdits(t *testing.T) {
	for _, c := range editCases(t) {
		t.Run(c.name, func(t *testing.T) {
			line := []byte(c.before)
			m := lookAs(c.peer, line)
			kind, eol := m.Kind(), string(m.LineEnd())
			for _, op := range c.ops {
				op, want, _ := strings.Cut(op, " ! ")
				was := string(m.Line())
				if err := edit(t, m, op); !errors.Is(err, editErrors[want]) {
					t.Errorf("%s: %v, want %v", op, err, editErrors[want])
				}
				if want != "" && string(m.Line()) != was {
					t.Errorf("%s: refused, but the line is %s", op, m.Line())
				}
				fresh := lookAs(c.peer, m.Line())
				checkPlaces(t, "after "+op, m, places(fresh))
				if m.Kind() != kind || fresh.Kind() != kind || string(m.LineEnd()) != eol {
					t.Errorf("%s: %v, %q", op, m.Kind(), m.LineEnd())
				}
			}
			if string(m.Line()) != c.after {
				t.Errorf("the line is\n%s, want\n%s", m.Line(), c.after)
			}
			if string(m.Frame())+eol != c.after {
				t.Errorf("the frame is %s", m.Frame())
			}
			if m.Edited() != (c.before != c.after) {
				t.Errorf("Edited: %v", m.Edited())
			}
			if string(line) != c.before {
				t.Errorf("the original bytes were changed to %s", line)
			}
		})
	}
}

const callFrame = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}`

func TestApply(t *testing.T) {
	a := strings.Index(callFrame, "1}}}")
	name := strings.Index(callFrame, `"x"`)
	for _, row := range []struct {
		name    string
		splices []Splice
		want    string // "" if Apply must fail
	}{
		{"none", nil, callFrame},
		{"any order", []Splice{{a, 1, []byte("22")}, {name, 3, []byte(`"yy"`)}}, strings.Replace(strings.Replace(callFrame, `"x"`, `"yy"`, 1), "1}}}", "22}}}", 1)},
		{"two inserts at one offset keep their order", []Splice{{a + 1, 0, []byte("0")}, {a + 1, 0, []byte("5")}}, strings.Replace(callFrame, "1}}}", "105}}}", 1)},
		{"insert where another replaces", []Splice{{a, 1, []byte("2")}, {a, 0, []byte("3")}}, strings.Replace(callFrame, "1}}}", "32}}}", 1)},
		{"neighbours", []Splice{{a, 1, []byte("2")}, {a + 1, 0, []byte("0")}}, strings.Replace(callFrame, "1}}}", "20}}}", 1)},
		{"at the ends", []Splice{{0, 0, []byte(" ")}, {len(callFrame), 0, []byte(" ")}}, " " + callFrame + " "},
		{"overlap", []Splice{{a, 1, []byte("2")}, {a - 1, 2, nil}}, ""},
		{"the same twice", []Splice{{a, 1, []byte("2")}, {a, 1, []byte("3")}}, ""},
		{"insert inside a replaced value", []Splice{{name, 3, []byte(`"y"`)}, {name + 1, 0, []byte("z")}}, ""},
		{"before the frame", []Splice{{-1, 1, nil}}, ""},
		{"after the frame", []Splice{{len(callFrame) + 1, 0, nil}}, ""},
		{"into the line end", []Splice{{len(callFrame), 1, nil}}, ""},
		{"negative length", []Splice{{a, -1, nil}}, ""},
		{"overflow", []Splice{{a, int(^uint(0) >> 1), nil}}, ""},
		{"AddMember of an array", []Splice{AddMember(Value{[]byte("[]"), 5}, "a", []byte("1"))}, ""},
		{"AddMember of no value", []Splice{AddMember(Value{}, "a", []byte("1"))}, ""},
	} {
		m := look([]byte(callFrame + "\n"))
		err := m.Apply(row.splices...)
		if row.want == "" {
			if err != ErrShape || string(m.Line()) != callFrame+"\n" || m.Edited() {
				t.Errorf("%s: %v, %s", row.name, err, m.Line())
			}
			continue
		}
		if err != nil || string(m.Line()) != row.want+"\n" || m.Edited() != (len(row.splices) > 0) {
			t.Errorf("%s: %v, %s", row.name, err, m.Line())
		}
		checkPlaces(t, row.name, m, places(look(m.Line())))
	}
}

// White space around a new value is trimmed: encoders end in a newline, and the place of a value is
// its first byte. Found by FuzzEdit.
func TestValuesAreTrimmed(t *testing.T) {
	m := look([]byte(strings.Replace(callFrame, "tools/call", "x", 1)))
	for _, step := range []struct {
		edit func() error
		want string
	}{
		{func() error { return m.Set([]byte(" {} \n"), "params", "arguments") }, `"arguments":{}}}`},
		{func() error { return m.Set([]byte("\t1 "), "params", "arguments", "b") }, `"arguments":{"b":1}}}`},
		{func() error { return m.Set([]byte(" [ ]\r\n"), "params", "arguments", "b") }, `"arguments":{"b":[ ]}}}`},
		{func() error { return m.Prepend([]byte(" 5\n"), "params", "arguments", "b") }, `"arguments":{"b":[5 ]}}}`},
		{func() error { return m.Apply(Splice{m.Arguments().Off, len(m.Arguments().Raw), []byte(" 5 ")}) }, `"arguments": 5 }}`},
	} {
		if err := step.edit(); err != nil || !strings.HasSuffix(string(m.Frame()), step.want) {
			t.Errorf("%v: %s, want %s", err, m.Frame(), step.want)
		}
		checkPlaces(t, step.want, m, places(look(m.Line())))
	}
	if err := m.Set([]byte("1"), "params", "arguments", "b"); err != ErrShape {
		t.Error(err)
	}
}

// No edit makes a line longer than the TypeScript SDK accepts.
func TestMaxEdited(t *testing.T) {
	frame := func(n int) []byte {
		return []byte(strings.Replace(callFrame, "1}}}", `"`+strings.Repeat("x", n-len(callFrame)-2)+`"}}}`+"\n", 1))
	}
	full := frame(MaxEdited - 1)
	if len(full) != MaxEdited-1 {
		t.Fatal(len(full))
	}
	m := look(full)
	if err := m.Set([]byte(`"yy"`), "params", "name"); err != nil || len(m.Line()) != MaxEdited {
		t.Errorf("up to the limit: %v, %d bytes", err, len(m.Line()))
	}
	for _, err := range []error{
		m.Set([]byte(`"yyy"`), "params", "name"),
		m.Set([]byte(`1`), "params", "arguments", "b"),
		m.Apply(Splice{0, 0, []byte(" ")}),
	} {
		if err != ErrTooLarge || len(m.Line()) != MaxEdited || !m.Name().Equals("yy") {
			t.Errorf("over the limit: %v, %d bytes", err, len(m.Line()))
		}
	}
	if err := m.Set([]byte(`"x"`), "params", "name"); err != nil {
		t.Errorf("shorter again: %v", err)
	}
	longer := look(frame(MaxEdited + 100))
	if err := longer.Set([]byte(`"yy"`), "params", "name"); err != ErrTooLarge {
		t.Errorf("a line over the limit, made longer: %v", err)
	}
	for _, name := range []string{`""`, `"y"`} {
		err := longer.Set([]byte(name), "params", "name")
		if shorter := name == `""`; shorter != (err == nil) {
			t.Errorf("a line over the limit, with the name %s: %v", name, err)
		}
	}
	if err := longer.Set([]byte(`1`), "params", "arguments", "a"); err != nil {
		t.Errorf("a line over the limit, made much shorter: %v", err)
	}
}

// Values from a message do not change when the message is edited, until the next Reset.
func TestValuesOutliveEdits(t *testing.T) {
	m := look([]byte(callFrame))
	var held []Value
	var was []string
	for i := range 50 {
		v := m.Name()
		held, was = append(held, v), append(was, string(v.Raw))
		check(t, m.Set(Quote(strings.Repeat("n", i)), "params", "name"))
		check(t, m.Set(held[i/2].Raw, "params", "arguments", "old"))
		if got := m.Get("params", "arguments", "old"); string(got.Raw) != was[i/2] {
			t.Fatalf("Set %s, but the value is %s", was[i/2], got.Raw)
		}
	}
	for i, v := range held {
		if string(v.Raw) != was[i] {
			t.Errorf("value %d is %s, was %s", i, v.Raw, was[i])
		}
	}
}

// Appending to a slice of a message does not write into the message.
func TestAppendToParts(t *testing.T) {
	buffer := []byte(callFrame + "\r\n" + `{"next":"line"}`)
	m := look(buffer[:len(callFrame)+2])
	for range 2 {
		line := string(m.Line())
		parts := [][]byte{m.Frame(), m.LineEnd(), m.ID(), m.Params().Raw, m.Name().Raw, m.Arguments().Raw, m.Root().Raw, m.Get("params", "arguments", "a").Raw, m.Get("jsonrpc").Raw}
		for member := range m.Root().Members() {
			parts = append(parts, member.Key.Raw, member.Value.Raw)
		}
		for _, p := range append(parts, m.Line()) {
			_ = append(p, '!')
			_ = append(p, "!!!!"...)
		}
		if string(m.Line()) != line || !strings.HasSuffix(string(buffer), `{"next":"line"}`) {
			t.Errorf("the line became %s", m.Line())
		}
		check(t, m.Set([]byte("2"), "params", "arguments", "a"))
	}
}

func TestReset(t *testing.T) {
	var m Message
	for _, row := range []struct{ line, frame, eol string }{
		{"", "", ""}, {"\n", "", "\n"}, {"\r\n", "", "\r\n"}, {"\r", "\r", ""}, {"a", "a", ""}, {"a\n", "a", "\n"},
		{"a\r\n", "a", "\r\n"}, {"a\r", "a\r", ""}, {"a\r\r\n", "a\r", "\r\n"}, {"a\n\n", "a\n", "\n"},
	} {
		m.Reset(Server, []byte(row.line))
		if string(m.Frame()) != row.frame || string(m.LineEnd()) != row.eol || string(m.Line()) != row.line {
			t.Errorf("%q: %q %q", row.line, m.Frame(), m.LineEnd())
		}
		if m.From != Server || m.Kind() != Unreadable || m.Plain() || m.Edited() || m.ID() != nil || m.Method() != "" || m.Params().Exists() {
			t.Errorf("%q: not reset: %+v", row.line, m)
		}
		m.LookEnvelope()
		m.Root()
	}
}

// A message that is reused keeps nothing from the frames before.
func TestMessagesAreReused(t *testing.T) {
	var m Message
	var s Scanner
	first := []byte(callFrame + "\n")
	m.Reset(Client, first)
	s.Look(&m)
	check(t, m.Set([]byte(`"edited"`), "params", "name"))
	edited := string(m.Line())
	clone := m.Clone()
	second := []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"second","arguments":{}}}` + "\n")
	was := string(second)
	m.Reset(Client, second)
	s.Look(&m)
	if m.Edited() || !m.Name().Equals("second") {
		t.Errorf("the second frame: %s", m.Name().Raw)
	}
	for range 3 {
		check(t, m.Set([]byte(`"second too"`), "params", "name"))
	}
	if string(clone.Line()) != edited || !clone.Name().Equals("edited") || !clone.Edited() || string(clone.ID()) != "1" {
		t.Errorf("the clone became %s", clone.Line())
	}
	line := string(m.Line())
	if err := clone.Set(Quote(strings.Repeat("x", 500)), "params", "arguments", "b"); err != nil || string(m.Line()) != line {
		t.Errorf("editing the clone: %v; the other is %s", err, m.Line())
	}
	if string(first) != callFrame+"\n" || string(second) != was {
		t.Error("the original bytes were changed")
	}
}

// The memory for edits of a large frame is freed with the next frame.
func TestLargeRoomIsFreed(t *testing.T) {
	m := look([]byte(strings.Replace(callFrame, "1}}}", `"`+strings.Repeat("x", 2*keepRoom)+`"}}}`, 1)))
	check(t, m.Set([]byte(`"y"`), "params", "name"))
	m.Reset(Client, []byte(callFrame))
	if cap(m.room) > keepRoom {
		t.Errorf("%d bytes are kept", cap(m.room))
	}
}

// Edits reuse the memory of earlier frames, which grows until all edits of a frame fit into it.
func TestEditsReuseRoom(t *testing.T) {
	for _, size := range []int{1, 3000, 100_000} {
		var m Message
		var s Scanner
		line := []byte(strings.Replace(callFrame, "1}}}", `"`+strings.Repeat("x", size)+`"}}}`, 1) + "\n")
		value := []byte(`"yy"`)
		edit := func() {
			m.Reset(Client, line)
			s.Look(&m)
			for range 5 {
				check(t, m.Set(value, "params", "name"))
			}
		}
		for range 5 {
			edit()
		}
		if n := testing.AllocsPerRun(100, edit); n > 5 { // the splices
			t.Errorf("%d bytes: %v allocations", size, n)
		}
	}
}

func TestNewMessages(t *testing.T) {
	for _, row := range []struct {
		m    *Message
		want string
		kind Kind
	}{
		{ErrorReply([]byte("7"), CodeInvalidParams, "no \"x\""), `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no \"x\"","data":{"source":"attache"}}}`, Error},
		{ErrorReply(nil, CodeParseError, "a\nb"), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a\nb","data":{"source":"attache"}}}`, Error},
		{ErrorReply([]byte{}, CodeParseError, ""), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"","data":{"source":"attache"}}}`, Error},
		{ResultReply([]byte(`"a"`), []byte(`{}`)), `{"jsonrpc":"2.0","id":"a","result":{}}`, Result},
		{ToolErrorReply([]byte("1"), "no", false), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`, Result},
		{ToolErrorReply([]byte("1"), "no", true), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true,"resultType":"complete"}}`, Result},
		{NewRequest(Server, []byte("1"), "roots/list", nil), `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, Request},
		{NewRequest(Client, []byte("1"), "tools/call", []byte(`{"name":"x","arguments":{"a":1},"_meta":{}}`)), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1},"_meta":{}}}`, Request},
		{NewNotification(Client, "x", []byte(`{}`)), `{"jsonrpc":"2.0","method":"x","params":{}}`, Notification},
	} {
		if string(row.m.Line()) != row.want+"\n" || row.m.Kind() != row.kind || !row.m.Plain() || !row.m.Edited() {
			t.Errorf("%s: %v, want %s", row.m.Line(), row.m.Kind(), row.want)
		}
		fresh := look(row.m.Line())
		if row.m.From == Client {
			checkPlaces(t, row.want, row.m, places(fresh))
		}
		// Another edit does not change the bytes that were already passed on.
		line := row.m.Line()
		if err := row.m.Apply(Splice{0, 0, []byte(" ")}); err != nil || string(line) != row.want+"\n" {
			t.Errorf("editing %s: %v", line, err)
		}
		row.m.Reset(Client, []byte(callFrame))
		row.m.LookEnvelope()
		row.m.Set([]byte("1"), "params", "b")
		if string(line) != row.want+"\n" {
			t.Errorf("after a reset, the line became %s", line)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":                     `""`,
		"a\"b\\c":              `"a\"b\\c"`,
		"\n\r\t\b\f\x00\x1f":   `"\n\r\t\u0008\u000c\u0000\u001f"`,
		"<&>é日😀\u2028\x7f":     "\"<&>é日😀\u2028\x7f\"",
		"a\xffb":               `"a�b"`,
		strings.Repeat("x", 9): `"xxxxxxxxx"`,
	} {
		q := Quote(s)
		if string(q) != want {
			t.Errorf("%q: %s, want %s", s, q, want)
		}
		var back string
		if err := json.Unmarshal(q, &back); err != nil || back != strings.ToValidUTF8(s, "�") || (Value{Raw: q}).Text() != back {
			t.Errorf("%q is decoded as %q, %v", s, back, err)
		}
	}
}

func TestValues(t *testing.T) {
	v := Value{[]byte(`{"a":{"b":[1,"x\u0041",null,{}],"":true},"c":-1e5,"d":"}"}`), 100}
	for _, row := range []struct {
		keys []string
		want string
	}{
		{nil, string(v.Raw)}, {[]string{"a", "b"}, `[1,"x\u0041",null,{}]`}, {[]string{"a", ""}, "true"}, {[]string{"c"}, "-1e5"},
		{[]string{"d"}, `"}"`}, {[]string{"e"}, ""}, {[]string{"c", "x"}, ""}, {[]string{"a", "b", "0"}, ""}, {[]string{"e", "e", "e"}, ""},
	} {
		got := v.Get(row.keys...)
		if string(got.Raw) != row.want || got.Exists() && string(v.Raw[got.Off-100:got.Off-100+len(got.Raw)]) != row.want {
			t.Errorf("%q: %s at %d, want %s", row.keys, got.Raw, got.Off, row.want)
		}
	}
	var elements []string
	for e := range v.Get("a", "b").Elements() {
		elements = append(elements, string(e.Raw))
	}
	if got := strings.Join(elements, " "); got != `1 "x\u0041" null {}` {
		t.Errorf("elements: %s", got)
	}
	for range v.Elements() {
		t.Error("Elements yields an element of an object")
	}
	for range v.Get("a", "b").Members() {
		t.Error("Members yields a member of an array")
	}
	for range v.Members() {
		break // the iterator stops
	}
	text := Value{Raw: []byte(`"a\n\u00e9\ud83d\ude00\ud83d\/"`)}
	if (Value{Raw: []byte(`"é/"`)}).View() != "é/" || text.View() != text.Text() || (Value{Raw: []byte(`""`)}).View() != "" || (Value{Raw: []byte("5")}).View() != "" || (Value{}).View() != "" {
		t.Error("View differs from Text")
	}
	if got := text.Text(); got != "a\né😀�/" || !text.Equals(got) || text.Equals("a") || text.Equals(got+"x") {
		t.Errorf("Text: %q", got)
	}
	if got := (Value{Raw: []byte(`"\ud83dxude00\ud83d\nde00\ud83d"`)}).Text(); got != "\ufffdxude00\ufffd\nde00\ufffd" {
		t.Errorf("lone surrogates: %q", got)
	}
	if (Value{Raw: []byte("5")}).Text() != "" || (Value{Raw: []byte("5")}).Equals("") || (Value{Raw: []byte(`"`)}).IsString() {
		t.Error("a value that is not a string has a text")
	}
}

// On text that no scanner has accepted, the methods of Value do not panic or loop.
func TestValuesOfGarbage(t *testing.T) {
	for _, line := range seeds(t) {
		for n := range min(len(line), 200) {
			v := Value{Raw: line[:n:n]}
			for range v.Members() {
			}
			for range v.Elements() {
			}
			v.Get("params", "name")
			v.Text()
			v.Equals("a")
			RemoveElements(v, func(Value) bool { return true })
			AddMember(v, "a", []byte("1"))
		}
	}
}

// After any splices, a message has the places that a new scan of the frame finds.
func TestPlacesAfterSplices(t *testing.T) {
	texts := []string{"", " ", "3", " 4", "5 ", `"d":6,`, `,"e":7`, `{"f":8}`}
	compared := 0
	apply := func(frame string, peer Peer, splices ...Splice) {
		m := lookAs(peer, []byte(frame+"\n"))
		if err := m.Apply(splices...); err != nil {
			return // they overlap
		}
		if fresh := look(m.Line()); fresh.Plain() && fresh.Kind() == m.Kind() {
			checkRescan(t, m)
			compared++
		} else if fresh.Plain() {
			t.Errorf("%s: %v, after a new scan %v", m.Frame(), m.Kind(), fresh.Kind())
		}
	}
	for _, c := range []struct {
		peer  Peer
		frame string
	}{
		{Client, `{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"a":1},"name":"b","arguments":{"c":[2]}}}`},
		{Client, `{"method":"tools/call","params": {"arguments":{} ,"name": "b" ,"_meta" : 3} ,"jsonrpc":"2.0","id":"x"}`},
		{Server, `{"jsonrpc":"2.0","id":1,"result":{"a":"b"}}`},
		{Server, `{"error": {"code":1} ,"id":1,"jsonrpc":"2.0"}`},
	} {
		for off := range len(c.frame) {
			for n := range min(10, len(c.frame)-off+1) {
				for _, text := range texts {
					apply(c.frame, c.peer, Splice{off, n, []byte(text)})
				}
			}
		}
		var values []Splice // each replaces a value, or inserts near the start or end of one
		for _, v := range places(lookAs(c.peer, []byte(c.frame+"\n"))) {
			for _, text := range texts[:4] {
				values = append(values, Splice{v.Off, len(v.Raw), []byte(text)}, Splice{v.Off + 1, 0, []byte(text)}, Splice{v.Off + len(v.Raw) - 1, 0, []byte(text)})
			}
		}
		for _, one := range values {
			for _, other := range values {
				apply(c.frame, c.peer, one, other)
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d edits resulted in a plain message", compared)
	}
}
