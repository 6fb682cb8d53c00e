package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/tidwall/gjson"
)

// seeds returns the frames of all fixtures except the very large ones.
func seeds(t testing.TB) (frames [][]byte) {
	frames = ambiguousLines(t)
	for _, row := range table(t, "corpus.txt", 3) {
		frames = append(frames, line(t, row[2]))
	}
	for _, row := range table(t, "envelope.txt", 5) {
		frames = append(frames, line(t, row[4]))
	}
	for _, f := range markedFrames(t) {
		frames = append(frames, f.frame)
	}
	return slices.DeleteFunc(frames, func(f []byte) bool { return len(f) > 8000 })
}

// FuzzLook compares the scanner with specPlain, and the values that it found with those that other
// JSON readers find.
func FuzzLook(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m := look(line)
		plain, batch := specPlain(m.Frame())
		if m.Plain() != plain {
			t.Fatalf("Plain is %v (%v), specPlain returns %v", m.Plain(), m.Ambiguity(), plain)
		}
		if plain && (m.Kind() == Batch) != batch {
			t.Fatalf("Kind is %v", m.Kind())
		}
		if plain && !batch {
			checkReaders(t, m)
			checkLookEnvelope(t, m)
		}
	})
}

// checkLookEnvelope checks that LookEnvelope and Look find the same message in a plain frame.
func checkLookEnvelope(t *testing.T, m *Message) {
	var e Message
	e.Reset(m.From, m.Line())
	message := e.LookEnvelope()
	if !message || e.Kind() != m.Kind() || e.Ambiguity() != 0 || e.Method() != m.Method() {
		t.Fatalf("LookEnvelope returns %v, %v %v", message, e.Kind(), e.Ambiguity())
	}
	for _, s := range []slot{slotID, slotParams, slotResult, slotError} {
		if e.spans[s] != m.spans[s] {
			t.Fatalf("%s: LookEnvelope has %v, Look %v", slotNames[s], e.spans[s], m.spans[s])
		}
	}
}

// The struct types are for encoding/json, which matches names without regard to case.
type structCall struct {
	JSONRPC json.RawMessage `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  json.RawMessage `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

type structParams struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      json.RawMessage `json:"_meta"`
}

type structArguments struct {
	Workspace json.RawMessage `json:"workspace"`
}

// checkReaders checks that all readers find the same values in a plain frame.
func checkReaders(t *testing.T, m *Message) {
	frame := m.Frame()
	var call structCall
	var params structParams
	var args structArguments
	decode(t, frame, &call)
	decode(t, call.Params, &params)
	decode(t, params.Arguments, &args)
	root := parse(frame)
	for _, c := range []struct {
		path  []string
		found Value
		byGo  json.RawMessage
	}{
		{[]string{"jsonrpc"}, m.at(slotVersion), call.JSONRPC},
		{[]string{"id"}, Value{Raw: m.ID()}, call.ID},
		{[]string{"method"}, m.at(slotMethod), call.Method},
		{[]string{"params"}, m.Params(), call.Params},
		{[]string{"result"}, m.Result(), call.Result},
		{[]string{"error"}, m.ErrorObject(), call.Error},
		{[]string{"params", "name"}, m.Name(), params.Name},
		{[]string{"params", "arguments"}, m.Arguments(), params.Arguments},
		{[]string{"params", "_meta"}, m.Meta(), params.Meta},
		{[]string{"params", "arguments", "workspace"}, m.Get("params", "arguments", "workspace"), args.Workspace},
	} {
		first, last := root, root
		byMap := json.RawMessage(frame)
		for _, k := range c.path {
			first, last, byMap = first.first(k), last.last(k), mapMember(byMap, k)
		}
		want := string(c.found.Raw)
		byGJSON := gjson.GetBytes(frame, strings.Join(c.path, "."))
		for reader, got := range map[string]string{
			"Go's map": string(byMap), "Go's struct": string(c.byGo), "gjson": byGJSON.Raw,
			"first-wins": raw(first), "last-wins": raw(last), "Get": string(m.Get(c.path...).Raw),
		} {
			if got != want {
				t.Errorf("%s: %q, but %s finds %q", strings.Join(c.path, "."), want, reader, got)
			}
		}
		if c.found.Exists() && c.path[0] != "id" && string(frame[c.found.Off:c.found.Off+len(want)]) != want {
			t.Errorf("%s is not at %d", strings.Join(c.path, "."), c.found.Off)
		}
	}
	// go-sdk may refuse a plain frame because of the content of an error, but does not read another
	// request from it.
	if read, err := jsonrpc.DecodeMessage(frame); err == nil {
		r, ok := read.(*jsonrpc.Request)
		if ok != (m.Kind() == Request || m.Kind() == Notification) || ok && (r.Method != m.Method() || string(r.Params) != string(m.Params().Raw)) {
			t.Errorf("go-sdk reads %+v", read)
		}
	}
	if method := root.first("method"); method != nil && (m.Method() != method.text || gjson.GetBytes(frame, "method").String() != method.text) {
		t.Errorf("Method is %q", m.Method())
	}
	if name := root.first("params").first("name"); name != nil && name.isString && (m.Name().Text() != name.text || !m.Name().Equals(name.text)) {
		t.Errorf("Name is %q", m.Name().Text())
	}
}

func raw(n *node) string {
	if n == nil {
		return ""
	}
	return n.raw
}

// decode reads an object into a struct. It ignores other values.
func decode(t *testing.T, frame json.RawMessage, to any) {
	t.Helper()
	if len(frame) == 0 || bytes.TrimLeft(frame, " \t")[0] != '{' {
		return
	}
	if err := json.Unmarshal(frame, to); err != nil {
		t.Errorf("%T: %v", to, err)
	}
}

func mapMember(object json.RawMessage, name string) json.RawMessage {
	var m map[string]json.RawMessage
	json.Unmarshal(object, &m)
	return m[name]
}

// FuzzEnvelope compares an Envelope fed in chunks with LookEnvelope.
func FuzzEnvelope(f *testing.F) {
	for i, s := range seeds(f) {
		f.Add(s, uint16(i), uint8(i))
	}
	for _, line := range []string{`{"id":"%s","method":"a"}`, `{"id":1,"method":"%s"}`, `{"id":1,"error":"%s"}`} {
		for _, n := range []int{captureValue - 2, captureValue - 1, 2 * captureValue} {
			f.Add(fmt.Appendf(nil, line, strings.Repeat("x", n)), uint16(n), uint8(n))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte, cut uint16, step uint8) {
		checkChunks(t, line, nil)
		n := int(cut) % (len(line) + 1)
		checkChunks(t, line, []int{n})
		var steps []int
		for i := 0; i < len(line); i += 1 + int(step)%23 {
			steps = append(steps, i)
		}
		checkChunks(t, line, steps)
	})
}

// checkChunks compares LookEnvelope with an Envelope that gets the line in chunks, cut at the
// offsets. An Envelope does not keep ids and methods longer than captureValue.
func checkChunks(t *testing.T, line []byte, cuts []int) {
	t.Helper()
	var e Envelope
	from := 0
	for _, cut := range append(slices.Clone(cuts), len(line)) {
		e.Feed(line[from:cut:cut])
		from = cut
	}
	var m Message
	m.Reset(Server, line)
	message := m.LookEnvelope()
	o := Oversize(Server, &e)
	if o.Frame() != nil || o.Line() != nil || o.Root().Exists() || o.Get("id").Exists() || o.Plain() {
		t.Errorf("%q: an oversize message has bytes", line)
	}
	if b := bytes.TrimLeft(m.Frame(), " \t\r\n"); len(b) > 0 && b[0] == '[' {
		if message && !(e.Complete() && o.Kind() == Batch) {
			t.Errorf("%q, cut at %v: not a batch", line, cuts)
		}
		return // an Envelope does not read the members of a batch
	}
	if message && !e.Complete() {
		t.Errorf("%q, cut at %v: not complete", line, cuts)
	}
	id, method := m.ID(), m.Method()
	if len(id) > captureValue {
		id = nil
	}
	if len(m.at(slotMethod).Raw) > captureValue {
		method = ""
	}
	if e.Complete() && (o.Kind() != m.Kind() || o.Ambiguity() != m.Ambiguity() || o.Method() != method || !bytes.Equal(o.ID(), id)) {
		t.Errorf("%q, cut at %v: %v %v %q %q, want %v %v %q %q", line, cuts,
			o.Kind(), o.Ambiguity(), o.Method(), o.ID(), m.Kind(), m.Ambiguity(), method, id)
	}
	if e.Complete() && !bytes.Equal(e.ID(), id) {
		t.Errorf("%q, cut at %v: ID is %q, want %q", line, cuts, e.ID(), id)
	}
}

// FuzzEdit edits plain frames and checks the bytes, the meaning and the places of values.
func FuzzEdit(f *testing.F) {
	for i, s := range seeds(f) {
		f.Add(s, uint8(i), "workspace", []byte(`"w"`))
		f.Add(s, uint8(i), "x", []byte(`{"a":[1,{}]}`))
	}
	f.Fuzz(func(t *testing.T, line []byte, op uint8, key string, raw []byte) {
		if bytes.ContainsAny(raw, "\r\n") || !json.Valid(raw) || !utf8.Valid(raw) || !utf8.ValidString(key) || len(raw)+len(key) > 1000 {
			t.Skip()
		}
		m := look(line)
		if !m.Plain() || m.Kind() == Batch {
			checkEditsRefused(t, m)
			return
		}
		before := bytes.Clone(m.Frame())
		held := m.Get(editPath(op, key)...)
		was := string(held.Raw)
		for range 3 { // each edit reuses the memory of an earlier one
			editOnce(t, m, op, key, raw)
			op = op>>2 | op<<6
		}
		if string(held.Raw) != was {
			t.Errorf("a value from before the edit reads %q, was %q", held.Raw, was)
		}
		if again := look(line); !bytes.Equal(again.Frame(), before) {
			t.Error("an edit changed the original line")
		}
	})
}

func checkEditsRefused(t *testing.T, m *Message) {
	if m.Kind() == Batch && m.Plain() {
		return
	}
	for _, err := range []error{
		m.Set([]byte("1"), "params", "x"), m.Delete("params", "x"), m.Prepend([]byte("1"), "result", "content"),
		m.Apply(Splice{0, 0, []byte(" ")}),
	} {
		if err != ErrNotPlain {
			t.Errorf("an edit of a message that is not plain: %v, want ErrNotPlain", err)
		}
	}
}

func editPath(op uint8, key string) []string {
	switch op >> 4 & 7 {
	case 0:
		return []string{"params", key}
	case 1:
		return []string{"params", "arguments", key, key}
	case 2:
		return []string{"params", "_meta", key}
	case 3:
		return []string{"result", key}
	case 4:
		return []string{"params", "arguments"}
	case 5:
		return []string{key}
	}
	return []string{"params", "arguments", key}
}

func editOnce(t *testing.T, m *Message, op uint8, key string, raw []byte) {
	before, eol := bytes.Clone(m.Frame()), string(m.LineEnd())
	path := editPath(op, key)
	value := m.Get(path...)
	tree := meaning(before)
	var err error
	var want any
	switch op & 3 {
	case 0:
		want, err = treeSet(tree, path, meaning(raw)), m.Set(raw, path...)
		if (want == nil) != (err == ErrShape) {
			t.Fatalf("Set %q: %v", path, err)
		}
	case 1:
		want, err = treeDelete(tree, path), m.Delete(path...)
	case 2:
		want, err = treeArray(tree, path, func(a []any) []any { return slices.Insert(a, 0, meaning(raw)) }), m.Prepend(raw, path...)
		if (want == nil) != (err == ErrShape) {
			t.Fatalf("Prepend %q: %v", path, err)
		}
	case 3:
		odd := func(i int) bool { return (int(op)>>2+i)%3 != 0 }
		i := -1
		if value.IsObject() {
			gone := func(name string) bool { return odd(len(name)) }
			err = m.Apply(RemoveMembers(value, func(m Member) bool { return gone(m.Key.Text()) })...)
			want = tree
			if o, ok := treeParent(tree, path)[path[len(path)-1]].(map[string]any); ok {
				maps.DeleteFunc(o, func(name string, _ any) bool { return gone(name) })
			}
			break
		}
		err = m.Apply(RemoveElements(value, func(Value) bool { i++; return odd(i) })...)
		want = treeArray(tree, path, func(a []any) []any {
			i := -1
			return slices.DeleteFunc(a, func(any) bool { i++; return odd(i) })
		})
	}
	if err != nil && err != ErrShape {
		t.Fatal(err)
	}
	if want == nil {
		want = meaning(before)
	}
	after := m.Frame()
	if !json.Valid(after) || !reflect.DeepEqual(meaning(after), want) {
		t.Fatalf("op %d %q %s: %s\nbecame %s", op&3, path, raw, before, after)
	}
	checkEditIsLocal(t, op, value, before, after)
	if string(m.Line()) != string(after)+eol || string(m.LineEnd()) != eol {
		t.Fatalf("the line is %q", m.Line())
	}
	checkRescan(t, m)
}

// checkEditIsLocal checks that an edit only inserted bytes, only removed bytes, or changed only the
// value that it names.
func checkEditIsLocal(t *testing.T, op uint8, value Value, before, after []byte) {
	prefix := 0
	for prefix < min(len(before), len(after)) && before[prefix] == after[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < min(len(before), len(after)) && before[len(before)-1-suffix] == after[len(after)-1-suffix] {
		suffix++
	}
	switch {
	case op&3 == 0 && value.Exists():
		if prefix < value.Off || suffix < len(before)-value.Off-len(value.Raw) {
			t.Fatalf("Set changed more than the value: %s\nbecame %s", before, after)
		}
	case op&3 == 0 || op&3 == 2:
		if prefix+suffix < len(before) {
			t.Fatalf("an insertion removed bytes: %s\nbecame %s", before, after)
		}
	case op&3 == 1:
		if prefix+suffix < len(after) {
			t.Fatalf("a removal inserted bytes: %s\nbecame %s", before, after)
		}
	}
}

// checkRescan compares m with a new scan of its frame.
func checkRescan(t *testing.T, m *Message) {
	fresh := look(m.Line())
	if fresh.Ambiguity() == NotJSON || fresh.Ambiguity() == EqualKeys {
		t.Fatalf("the edited frame is %v: %s", fresh.Ambiguity(), m.Frame())
	}
	if fresh.Kind() != m.Kind() {
		t.Fatalf("Kind after the edit: %v, after a new scan: %v: %s", m.Kind(), fresh.Kind(), m.Frame())
	}
	if !m.deep {
		fresh.LookEnvelope()
	}
	checkPlaces(t, string(m.Frame()), m, places(fresh))
}

// treeSet does what Set does, on a decoded frame. It returns nil if Set must fail.
func treeSet(tree any, path []string, v any) any {
	if len(path) == 1 {
		if _, there := tree.(map[string]any)[path[0]]; !there {
			return nil // Set does not add members to the envelope
		}
	} else if _, there := tree.(map[string]any)[path[0]]; !there {
		return nil
	}
	at := tree.(map[string]any)
	for _, k := range path[:len(path)-1] {
		next, there := at[k]
		if !there {
			next = map[string]any{}
			at[k] = next
		}
		object, ok := next.(map[string]any)
		if !ok {
			return nil
		}
		at = object
	}
	at[path[len(path)-1]] = v
	return tree
}

func treeParent(tree any, path []string) map[string]any {
	for _, k := range path[:len(path)-1] {
		object, _ := tree.(map[string]any)
		tree = object[k]
	}
	object, _ := tree.(map[string]any)
	return object
}

func treeDelete(tree any, path []string) any {
	delete(treeParent(tree, path), path[len(path)-1])
	return tree
}

func treeArray(tree any, path []string, change func([]any) []any) any {
	parent := treeParent(tree, path)
	array, ok := parent[path[len(path)-1]].([]any)
	if !ok {
		return nil
	}
	parent[path[len(path)-1]] = change(array)
	return tree
}

// FuzzReader checks that a Reader finds the same lines whatever the sizes of the reads.
func FuzzReader(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\nccc"), uint8(3), []byte{1, 2, 3})
	f.Add([]byte(strings.Repeat("0123456789\n", 20)), uint8(11), []byte{0, 7})
	f.Add([]byte(strings.Repeat("0123456789", 20)+"\nx\n"), uint8(8), []byte{64})
	f.Add([]byte{}, uint8(1), []byte{})
	f.Fuzz(func(t *testing.T, data []byte, hold uint8, reads []byte) {
		limit := int(hold)%64 + 1
		want := splitLines(data, limit)
		for _, small := range []int{1, 2, 8, limit, 100} {
			for _, src := range []io.Reader{
				bytes.NewReader(data), iotest.OneByteReader(bytes.NewReader(data)), iotest.HalfReader(bytes.NewReader(data)),
				iotest.DataErrReader(bytes.NewReader(data)), &unevenReader{data: data, reads: reads},
			} {
				got, err := readLines(newReader(src, limit, small), limit)
				if err != io.EOF || !reflect.DeepEqual(got, want) {
					t.Fatalf("limit %d, small %d, %T: %+v, %v; want %+v", limit, small, src, got, err, want)
				}
			}
		}
	})
}

// A readLine is a line from a Reader. A line over the limit is streamed.
type readLine struct {
	text     string
	streamed bool
}

func splitLines(data []byte, limit int) (lines []readLine) {
	for line := range bytes.Lines(data) {
		// A line that fills the limit without a newline may be longer, so it is streamed.
		streamed := len(line) > limit || len(line) == limit && line[limit-1] != '\n'
		lines = append(lines, readLine{string(line), streamed})
	}
	return lines
}

func readLines(r *Reader, limit int) (lines []readLine, err error) {
	text, streamed := "", false
	for {
		announced := r.Buffered()
		line, more, err := r.Next()
		if err != nil {
			if len(line) > 0 || more || streamed {
				lines = append(lines, readLine{"bytes or an open line together with an error", true})
			}
			return lines, err
		}
		if announced && (more || !bytes.HasSuffix(line, []byte{'\n'})) {
			lines = append(lines, readLine{"not what Buffered announced", true})
		}
		if len(line) > limit || bytes.IndexByte(line, '\n') != bytes.LastIndexByte(line, '\n') {
			lines = append(lines, readLine{"too much at once: " + string(line), true})
		}
		text += string(line)
		if streamed = streamed || more; more {
			continue
		}
		lines = append(lines, readLine{text, streamed})
		text, streamed = "", false
	}
}

// An unevenReader returns reads[n] bytes at a time, which may be 0.
type unevenReader struct {
	data  []byte
	reads []byte
	n     int
}

func (j *unevenReader) Read(p []byte) (int, error) {
	if len(j.data) == 0 {
		return 0, io.EOF
	}
	n := 1
	if len(j.reads) > 0 {
		n = int(j.reads[j.n%len(j.reads)])
	}
	if j.n++; n == 0 && j.n%2 == 0 {
		n = 1
	}
	n = copy(p[:min(n, len(p))], j.data)
	j.data = j.data[n:]
	return n, nil
}
