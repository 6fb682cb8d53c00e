package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func look(line []byte) *Message {
	s := Scanner{ArgumentNames: argumentNames}
	var m Message
	m.Reset(Client, line)
	s.Look(&m)
	return &m
}

func TestAmbiguous(t *testing.T) {
	rows := table(t, "ambiguous.txt", 5)
	s := Scanner{ArgumentNames: argumentNames}
	var m Message
	for _, row := range rows {
		t.Run(row[2], func(t *testing.T) {
			line := line(t, row[4])
			before := bytes.Clone(line)
			m.Reset(Client, line)
			s.Look(&m)
			if want := verdict(t, row[0]); m.Ambiguity() != want {
				t.Errorf("verdict: %v, want %v", m.Ambiguity(), want)
			}
			if want := row[0] == "plain" || row[0] == "batch"; m.Plain() != want {
				t.Errorf("Plain: %v, want %v", m.Plain(), want)
			}
			if want := row[0] == "batch"; (m.Kind() == Batch) != want {
				t.Errorf("Kind: %v", m.Kind())
			}
			if got := idText(m.ID()); got != row[1] {
				t.Errorf("ID: %s, want %s", got, row[1])
			}
			if !bytes.Equal(line, before) || !bytes.Equal(m.Line(), before) || m.Edited() {
				t.Error("Look changed the line")
			}
			if m.Plain() && !(json.Valid(m.Frame()) && utf8.Valid(m.Frame())) {
				t.Error("plain, but not valid JSON in UTF-8")
			}
			if got := look(line); got.Ambiguity() != m.Ambiguity() || got.Kind() != m.Kind() {
				t.Errorf("a new Scanner finds %v, %v", got.Ambiguity(), got.Kind())
			}
		})
	}
	if len(rows) < 80 {
		t.Errorf("only %d rows", len(rows))
	}
}

// A Scanner accepts a prefix of a frame only if encoding/json accepts it.
func TestPrefixes(t *testing.T) {
	for _, frame := range []string{
		`{"id":-1,"a":[true,false,null,"b\u00e9\\\"c",{"long name of a member":[]}],"d":{"\u0065":{} } } `,
		`-0.25E-10`, `1234567890`, `12`, `[ 1.5e+3 , -7 , 0 ]`, `"text that is longer than a word \\"`,
	} {
		for n := range len(frame) + 1 {
			want := json.Valid([]byte(frame[:n]))
			if m := look([]byte(frame[:n])); (m.Ambiguity() != NotJSON) != want {
				t.Errorf("%q: %v", frame[:n], m.Ambiguity())
			}
		}
	}
}

// reset keeps memory for up to keepNames names and bytes.
func TestNameSetKeepsMemory(t *testing.T) {
	for size, want := range map[int]int{keepNames: keepNames, keepNames + 1: 0} {
		n := nameSet{open: make([]uint64, 0, size), plain: make([]byte, 0, size)}
		if n.reset(); cap(n.open) != want || cap(n.plain) != want {
			t.Errorf("after %d names and bytes, reset keeps memory for %d and %d", size, cap(n.open), cap(n.plain))
		}
	}
}

func idText(id []byte) string {
	if id == nil {
		return "-"
	}
	return string(id)
}

// Scanners read only the line: the bytes after it in the buffer make no difference.
func TestNothingAfterTheLineIsRead(t *testing.T) {
	for _, line := range seeds(t) {
		step := 1 + len(line)/300
		for n := 0; n < len(line); n += step {
			exact := slices.Clip(slices.Clone(line[:n]))
			var e Envelope
			e.Feed(exact)
			m, want := look(exact), Oversize(Server, &e)
			if m.Plain() && !json.Valid(m.Frame()) {
				t.Errorf("%q is plain, but not valid JSON", exact)
			}
			var l Message
			l.Reset(Server, exact)
			message := l.LookEnvelope()
			for _, after := range []string{string(line[n:]), "\"}]}}}\n", "}}}}}}}}", "\"\"\"\"\"\"\"\"", "01234567", "        ", "\\\\\\\\\\\\\\\\"} {
				loose := append(slices.Clone(exact), after...)[:n]
				var e Envelope
				e.Feed(loose)
				got := Oversize(Server, &e)
				if got.Kind() != want.Kind() || string(got.ID()) != string(want.ID()) || got.Method() != want.Method() {
					t.Fatalf("%q, with %q after it: Envelope", exact, after)
				}
				again := look(loose)
				if again.Ambiguity() != m.Ambiguity() || again.Kind() != m.Kind() || string(again.ID()) != string(m.ID()) {
					t.Fatalf("%q, with %q after it: Look", exact, after)
				}
				if ok := again.LookEnvelope(); ok != message || again.Kind() != l.Kind() || string(again.ID()) != string(l.ID()) {
					t.Fatalf("%q, with %q after it: LookEnvelope", exact, after)
				}
			}
		}
	}
}

// places returns the values that m has recorded, by name.
func places(m *Message) map[string]Value {
	found := map[string]Value{
		"jsonrpc": m.at(slotVersion), "id": {m.ID(), m.at(slotID).Off}, "method": m.at(slotMethod),
		"params": m.Params(), "result": m.Result(), "error": m.ErrorObject(),
		"name": m.Name(), "arguments": m.Arguments(), "_meta": m.Meta(),
	}
	for name, v := range found {
		if !v.Exists() {
			delete(found, name)
		}
	}
	return found
}

func checkPlaces(t *testing.T, how string, m *Message, want map[string]Value) {
	t.Helper()
	found := places(m)
	for name, v := range want {
		if got := found[name]; string(got.Raw) != string(v.Raw) || got.Off != v.Off {
			t.Errorf("%s: %s is %q at %d, want %q at %d", how, name, got.Raw, got.Off, v.Raw, v.Off)
		}
		delete(found, name)
	}
	for name, v := range found {
		t.Errorf("%s: found %s %q, which is not marked", how, name, v.Raw)
	}
}

func TestPlaces(t *testing.T) {
	for _, f := range markedFrames(t) {
		t.Run(string(f.frame), func(t *testing.T) {
			if f.peer != "server" {
				m := look(f.frame)
				if !m.Plain() || m.Kind().String() != f.kind {
					t.Errorf("Look: %v, %v", m.Kind(), m.Ambiguity())
				}
				checkPlaces(t, "Look", m, f.places)
			}
			if f.peer != "client" {
				var m Message
				m.Reset(Server, f.frame)
				if !m.LookEnvelope() || m.Kind().String() != f.kind || m.Ambiguity() != 0 {
					t.Errorf("LookEnvelope: %v, %v", m.Kind(), m.Ambiguity())
				}
				checkPlaces(t, "LookEnvelope", &m, f.places)
			}
		})
	}
}

// Scanners find an invalid byte at any position of a string of any length.
func TestEveryByteOfAStringIsRead(t *testing.T) {
	for _, length := range []int{1, 7, 8, 9, 31, 40, 41, 120} {
		for at := range length {
			for _, row := range []struct {
				text string
				want Ambiguity
			}{
				{"\x1f", NotJSON}, {"\x00", NotJSON}, {"\n", NotJSON}, {"\"", NotJSON}, {"\\x", NotJSON}, {"\xff", NotUTF8}, {"\x80", NotUTF8}, {"é", 0},
				{"\\n", 0}, {"\x7f", 0}, {" ", 0}, {"!", 0}, {"#", 0}, {"[", 0}, {"]", 0}, {"\u009f", 0}, {"\u00a2", 0}, {"Ü", 0},
			} {
				in := strings.Repeat("x", at) + row.text + strings.Repeat("y", length-at-1)
				if m := look([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","a":"` + in + `"}`)); m.Ambiguity() != row.want {
					t.Fatalf("value %q: %v", in, m.Ambiguity())
				}
				if m := look([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","` + in + `":0}`)); m.Ambiguity() != row.want {
					t.Fatalf("name %q: %v", in, m.Ambiguity())
				}
			}
		}
	}
}

func TestEqualNamesAmongMany(t *testing.T) {
	for _, n := range []int{3, 15, 16, 17, 18, 100, 4096, 4097, 5000, 70_000} {
		for _, format := range []string{"%d", "key-%09d", "\\u0061%d"} {
			var b bytes.Buffer
			b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":{`)
			for i := range n - 1 {
				fmt.Fprintf(&b, `"`+format+`":0,`, i)
			}
			object := func(last int) []byte { return fmt.Appendf(slices.Clip(b.Bytes()), `"`+format+`":0}}}`, last) }
			if m := look(object(n - 1)); !m.Plain() {
				t.Errorf("%d names like %s: %v", n, format, m.Ambiguity())
			}
			for _, equal := range []int{0, n / 2, n - 2} {
				if m := look(object(equal)); m.Ambiguity() != EqualKeys {
					t.Errorf("%d names like %s, the last equal to number %d: %v", n, format, equal, m.Ambiguity())
				}
			}
		}
	}
}

// Names of any length that differ in one bit are not equal.
func TestNamesThatDifferInABit(t *testing.T) {
	for n := range 20 {
		for i := range n {
			for bit := range 5 {
				name := bytes.Repeat([]byte("a"), n)
				name[i] ^= 1 << bit
				frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":{"%s":0,"%s":0}}}`, strings.Repeat("a", n), name)
				if m := look([]byte(frame)); !m.Plain() {
					t.Errorf("%s: %v", frame, m.Ambiguity())
				}
			}
		}
	}
}

// A Scanner does not keep the memory for a large frame.
func TestScannerFreesMemory(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"x","params":{`)
	for i := range 200_000 {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	b.WriteString(`"\u0061` + strings.Repeat("a", 200_000) + `":0}}`)
	var s Scanner
	var m Message
	m.Reset(Client, b.Bytes())
	if s.Look(&m); !m.Plain() {
		t.Fatal(m.Ambiguity())
	}
	if n := 8*cap(s.names.open) + cap(s.names.plain); n > 1<<20 {
		t.Errorf("the scanner keeps %d bytes", n)
	}
	if s.b != nil || s.m != nil {
		t.Error("the scanner keeps the frame")
	}
}

// A Scanner drops the names of objects that an incomplete frame did not close.
func TestScannerDropsOpenNames(t *testing.T) {
	var s Scanner
	var m Message
	for range 1000 {
		m.Reset(Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"b":2`))
		s.Look(&m)
	}
	if n := len(s.names.open) + cap(s.names.open); n > 100 {
		t.Errorf("%d names are kept", n)
	}
}

// ArgumentNames may have more levels than the depth of any frame.
func TestManyArgumentLevels(t *testing.T) {
	s := Scanner{ArgumentNames: make([][]string, 600)}
	for i := range s.ArgumentNames {
		s.ArgumentNames[i] = []string{"a"}
	}
	var m Message
	deep := strings.Repeat(`{"b":`, 509)
	m.Reset(Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":`+deep+`{"A":1}`+strings.Repeat("}", 509)+`}}`))
	if s.Look(&m); m.Ambiguity() != TwinName {
		t.Error(m.Ambiguity())
	}
}

func TestLookAllocatesNothing(t *testing.T) {
	var s Scanner
	s.ArgumentNames = argumentNames
	var m Message
	for _, line := range ambiguousLines(t) {
		look := func() {
			m.Reset(Client, line)
			s.Look(&m)
		}
		look() // grow the buffers
		if n := testing.AllocsPerRun(10, look); n > 0 {
			t.Errorf("%.200q: %v allocations", line, n)
		}
	}
}

func TestMethodNames(t *testing.T) {
	for method, want := range map[string]string{
		`"tools/call"`:        "tools/call",
		`"tools\/call"`:       "tools/call",
		`"x/y"`:               "x/y",
		`"\u0000"`:            "\x00",
		`5`:                   "",
		`xtools/cally`:        "", // LookEnvelope accepts it
		`""`:                  "",
		`"notifications/foo"`: "notifications/foo",
	} {
		var m Message
		m.Reset(Server, []byte(`{"jsonrpc":"2.0","id":1,"method":`+method+`}`))
		m.LookEnvelope()
		if got := m.Method(); got != want {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
		if m.MethodIs("tools/call") != (want == "tools/call") {
			t.Errorf("%s: MethodIs differs from Method", method)
		}
	}
	for _, name := range []string{"tools/call", "tools/list", "initialize", "ping", "notifications/progress"} {
		var m Message
		m.Reset(Client, []byte(`{"jsonrpc":"2.0","method":"`+name+`"}`))
		m.LookEnvelope()
		if n := testing.AllocsPerRun(10, func() { _ = m.Method() }); n > 0 || m.Method() != name {
			t.Errorf("%s: %v allocations, %q", name, n, m.Method())
		}
	}
}

func TestStrings(t *testing.T) {
	for _, row := range []struct {
		got  fmt.Stringer
		want string
	}{
		{Client, "client"}, {Server, "server"}, {Unreadable, "unreadable"}, {Request, "request"}, {Notification, "notification"},
		{Result, "result"}, {Error, "error"}, {Batch, "batch"}, {Ambiguity(0), "plain"}, {NotJSON, "not one JSON value"},
		{BadCall, "tools/call needs an object of params with a string name and an object of arguments"},
	} {
		if row.got.String() != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
	for a, want := range map[Ambiguity]int{
		NotJSON: -32700, NotUTF8: -32700, TooDeep: -32600, EqualKeys: -32600, TwinName: -32600, Inherited: -32600, BadEnvelope: -32600, BadCall: -32602,
	} {
		if a.Code() != want {
			t.Errorf("%v: code %d, want %d", a, a.Code(), want)
		}
	}
	for k := Unreadable; k <= Batch; k++ {
		if k.IsReply() != (k == Result || k == Error) {
			t.Errorf("%v: IsReply %v", k, k.IsReply())
		}
	}
}

// A condition may read the elements of lists, so the scanner checks names there too.
func TestNamesInLists(t *testing.T) {
	for arguments, plain := range map[string]bool{
		`{"files":[{"path":1},{"Other":1}]}`:          true,
		`{"files":[{"a":1},{"Path":1}]}`:              false,
		`{"files":[{"pa\u0054h":1}]}`:                 false,
		`{"files":[[{"Path":1}]]}`:                    true, // no condition reads these
		`{"files":[{"path":[{"Path":1}]}]}`:           true,
		`{"files":{"x":{"Path":1}}}`:                  false, // a condition may read arguments.files[name]
		`{"Path":1,"files":[{"path":{"PATH":1}},{}]}`: true,
	} {
		s := Scanner{ArgumentNames: [][]string{{"files"}, {"[]"}, {"path"}}}
		var m Message
		m.Reset(Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":`+arguments+`}}`))
		if s.Look(&m); m.Plain() != plain {
			t.Errorf("%s: %v", arguments, m.Ambiguity())
		}
	}
}
