package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
)

func TestLookEnvelope(t *testing.T) {
	for _, row := range table(t, "envelope.txt", 5) {
		t.Run(row[3], func(t *testing.T) {
			var m Message
			m.Reset(Server, line(t, row[4]))
			if ok := m.LookEnvelope(); ok != (row[0] != "noise") {
				t.Errorf("LookEnvelope: %v", ok)
			}
			if row[0] != "noise" && m.Ambiguity() != verdict(t, row[0]) {
				t.Errorf("Ambiguity: %v", m.Ambiguity())
			}
			if m.Kind().String() != row[1] {
				t.Errorf("Kind: %v, want %s", m.Kind(), row[1])
			}
			if got := idText(m.ID()); got != expand(row[2]) {
				t.Errorf("ID: %s, want %s", got, row[2])
			}
			if row[0] != "noise" && strings.HasPrefix(row[0], "message") != m.Plain() && m.Kind() != Unreadable {
				t.Errorf("Plain: %v", m.Plain())
			}
		})
	}
}

// locate accepts the objects that encoding/json accepts.
func TestEnvelopeIsAnObject(t *testing.T) {
	everyText(`{}":, 1`, 6, func(line string) {
		if line == "" || strings.Count(line, "{") > 1 {
			return // locate does not check nested values
		}
		var m Message
		m.Reset(Server, []byte(line))
		want := json.Valid([]byte(line)) && strings.HasPrefix(strings.TrimSpace(line), "{")
		if got := m.locate(skip.Space(m.Frame(), 0)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	})
}

// everyText calls visit with all texts of up to n bytes of the alphabet.
func everyText(alphabet string, n int, visit func(text string)) {
	var grow func(text string)
	grow = func(text string) {
		if visit(text); len(text) == n {
			return
		}
		for i := range len(alphabet) {
			grow(text + alphabet[i:i+1])
		}
	}
	grow("")
}

// An Envelope and LookEnvelope find the same message, wherever the chunks end.
func TestEnvelopeInChunks(t *testing.T) {
	for _, line := range seeds(t) {
		checkChunks(t, line, nil)
		var offsets []int
		for i := range line {
			offsets = append(offsets, i)
			if len(line) < 1000 || i%7 == 0 {
				checkChunks(t, line, []int{i})
			}
		}
		checkChunks(t, line, offsets)
		if t.Failed() {
			return
		}
	}
}

// The id is known after its last byte, and stays known.
func TestEnvelopeIDDuringFeed(t *testing.T) {
	for _, row := range []struct{ before, id, after string }{
		{`{"jsonrpc":"2.0","id":`, `17`, `,"method":"tools/call","params":{"a":["b"],"c":"d"}}`},
		{`{"result":{"id":3},"jsonrpc":"2.0","id":`, `"a\"b"`, `}`},
		{` { "id" : `, `-5`, ` , "result" : [ ] , "a" : null } `},
	} {
		var e Envelope
		whole := row.before + row.id + row.after
		for i := range len(whole) {
			e.Feed([]byte{whole[i]})
			ended := len(row.before) + len(row.id) - 1
			if row.id[0] != '"' {
				ended++ // a number ends only with the byte after it
			}
			if want := map[bool]string{true: row.id, false: "-"}[i >= ended]; idText(e.ID()) != want {
				t.Fatalf("after %s: ID is %s, want %s", whole[:i+1], idText(e.ID()), want)
			}
			if !e.CanBeMessage() || e.Complete() != (i >= strings.LastIndexByte(whole, '}')) {
				t.Fatalf("after %s: CanBeMessage %v, Complete %v", whole[:i+1], e.CanBeMessage(), e.Complete())
			}
		}
	}
}

// A part of a name or value that is too long to keep is not taken for the whole, wherever the
// chunks end.
func TestEnvelopeTooLongToKeep(t *testing.T) {
	long := strings.Repeat("x", captureValue)
	for _, row := range []struct {
		name, line string
		id, method string
		kind       Kind
	}{
		{"name that ends in id", `{"` + long + `id":5,"jsonrpc":"2.0","method":"x"}`, "-", "x", Notification},
		{"id", `{"jsonrpc":"2.0","id":"` + long + `","method":"x"}`, "-", "x", Request},
		{"method that ends in tools/call", `{"jsonrpc":"2.0","id":5,"method":"` + long + `\"tools/call"}`, "5", "", Request},
		{"error", `{"jsonrpc":"2.0","id":5,"error":"` + long + `"}`, "5", "", Error},
	} {
		for step := 1; step < len(row.line); step += 1 + step/2 {
			var e Envelope
			for rest := []byte(row.line); len(rest) > 0; {
				n := min(step, len(rest))
				e.Feed(rest[:n])
				rest = rest[n:]
			}
			m := Oversize(Client, &e)
			if idText(m.ID()) != row.id || idText(e.ID()) != row.id || m.Method() != row.method || m.Kind() != row.kind || !e.Complete() {
				t.Errorf("%s, %d bytes at a time: %v %.20s %.20q", row.name, step, m.Kind(), idText(m.ID()), m.Method())
			}
			if m.MethodIs("tools/call") || m.MethodIs("") {
				t.Errorf("%s, %d bytes at a time: MethodIs matches", row.name, step)
			}
		}
	}
}

func TestOversizeHasNoBytes(t *testing.T) {
	var e Envelope
	e.Feed([]byte(`{"jsonrpc":"2.0","id":"{\"a\":1}","method":"tools/call","params":{"name":"x"}}`))
	m := Oversize(Client, &e)
	for _, m := range []*Message{m, m.Clone(), m.Clone().Clone()} {
		if string(m.ID()) != `"{\"a\":1}"` || !m.MethodIs("tools/call") || m.Kind() != Request || !m.TooLarge() || m.Plain() || m.Edited() {
			t.Errorf("%v %s %s", m.Kind(), m.ID(), m.Method())
		}
		if m.Frame() != nil || len(m.Line()) != 0 || len(m.LineEnd()) != 0 {
			t.Errorf("an oversize message has bytes: %q %q %q", m.Frame(), m.Line(), m.LineEnd())
		}
		for _, v := range []Value{m.Root(), m.Get(), m.Get("a"), m.Get("params"), m.Get("params", "name"), m.Get("result"), m.Params(), m.Result(), m.ErrorObject(), m.Name(), m.Arguments(), m.Meta()} {
			if v.Exists() {
				t.Errorf("an oversize message has a value: %s", v.Raw)
			}
		}
		for _, err := range []error{m.Set([]byte("1"), "params", "a"), m.Delete("params", "a"), m.Delete("a"), m.Prepend([]byte("1"), "result"), m.Apply(Splice{0, 1, nil})} {
			if err != ErrTooLarge {
				t.Errorf("an edit: %v, want ErrTooLarge", err)
			}
		}
	}
	clone := m.Clone()
	e.Feed([]byte(" "))
	e = Envelope{}
	copy(m.ID(), "0000")
	if string(clone.ID()) != `"{\"a\":1}"` {
		t.Errorf("the clone shares bytes: %s", clone.ID())
	}
}

// If a line turns out to be invalid long after its id, the message has no id.
func TestOversizeOfGarbage(t *testing.T) {
	var e Envelope
	e.Feed([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call" "x"`))
	m := Oversize(Client, &e)
	if m.Kind() != Unreadable || m.ID() != nil || m.Method() != "" || e.CanBeMessage() || e.Complete() {
		t.Errorf("%v %s %s", m.Kind(), m.ID(), m.Method())
	}
	if string(e.ID()) != "1" {
		t.Error("the Envelope has no id, although a refusal needs it")
	}
}

func TestLookEnvelopeAllocatesNothing(t *testing.T) {
	var m Message
	for _, row := range table(t, "envelope.txt", 5) {
		if row[1] == "batch" {
			continue
		}
		line := line(t, row[4])
		if bytes.HasPrefix(line, []byte("[")) {
			continue // encoding/json checks the syntax, and allocates
		}
		if n := testing.AllocsPerRun(10, func() {
			m.Reset(Server, line)
			m.LookEnvelope()
		}); n > 0 {
			t.Errorf("%s: %v allocations", row[3], n)
		}
	}
}

// skip.Value finds the same ends as a decoder, at every alignment.
func TestSkipValue(t *testing.T) {
	for _, row := range table(t, "corpus.txt", 3) {
		frame := line(t, row[2])
		for shift := range 17 {
			b := append(bytes.Repeat([]byte{' '}, shift), frame...)
			for i := shift; i < len(b); i++ {
				d := json.NewDecoder(bytes.NewReader(b[i:]))
				var v json.RawMessage
				want := -1
				if b[i] == '{' || b[i] == '[' || b[i] == '"' {
					if d.Decode(&v) != nil {
						continue // for example a quote that ends a string
					}
					want = i + len(v)
				} else {
					continue
				}
				if got := skip.Value(b, i); got != want {
					t.Fatalf("%s: the value at %d ends at %d, want %d", b, i, got, want)
				}
				if got := skip.Value(b[:want:want], i); got != want {
					t.Fatalf("%s: the value at %d, with nothing after it, ends at %d, want %d", b, i, got, want)
				}
				if got := skip.Value(b[:want-1:want-1], i); got != -1 {
					t.Fatalf("%s: the value at %d, without its last byte, ends at %d, want -1", b, i, got)
				}
			}
		}
	}
}
