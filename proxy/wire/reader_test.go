package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReader(t *testing.T) {
	type lines = []readLine
	for _, row := range []struct {
		name string
		hold int
		in   string
		want lines
	}{
		{"nothing", 8, "", nil},
		{"one line", 8, "abc\n", lines{{"abc\n", false}}},
		{"no final newline", 8, "abc\nde", lines{{"abc\n", false}, {"de", false}}},
		{"crlf", 8, "abc\r\nde\r\n", lines{{"abc\r\n", false}, {"de\r\n", false}}},
		{"bare carriage return", 8, "a\rb\n", lines{{"a\rb\n", false}}},
		{"empty lines", 8, "\n\n\r\n\n", lines{{"\n", false}, {"\n", false}, {"\r\n", false}, {"\n", false}}},
		{"exactly the limit", 8, "1234567\n1234567\n", lines{{"1234567\n", false}, {"1234567\n", false}}},
		{"one over the limit", 8, "12345678\n1\n", lines{{"12345678\n", true}, {"1\n", false}}},
		{"twice the limit", 8, "123456781234567\n1\n", lines{{"123456781234567\n", true}, {"1\n", false}}},
		{"many times the limit", 8, strings.Repeat("x", 100) + "\n1\n", lines{{strings.Repeat("x", 100) + "\n", true}, {"1\n", false}}},
		{"over the limit without newline", 8, "123456789", lines{{"123456789", true}}},
		// The reader does not know that no newline follows, unless the source returns io.EOF together
		// with the bytes. Found by FuzzReader.
		{"exactly the limit without newline", 8, "12345678", lines{{"12345678", true}}},
		{"short of the limit without newline", 8, "1234567", lines{{"1234567", false}}},
		{"crlf across the limit", 8, "1234567\r\n", lines{{"1234567\r\n", true}}},
		{"limit of one", 1, "\na\n", lines{{"\n", false}, {"a\n", true}}},
		{"long, then short, then long", 8, "123456789\na\n123456789\n", lines{{"123456789\n", true}, {"a\n", false}, {"123456789\n", true}}},
	} {
		for _, small := range []int{1, 3, 8, 64} {
			for how, src := range map[string]io.Reader{
				"whole": strings.NewReader(row.in), "bytes": iotest.OneByteReader(strings.NewReader(row.in)),
				"halves": iotest.HalfReader(strings.NewReader(row.in)), "with the error": iotest.DataErrReader(strings.NewReader(row.in)),
				"with empty reads": &unevenReader{data: []byte(row.in), reads: []byte{0, 2, 0, 3}},
			} {
				got, err := readLines(newReader(src, row.hold, small), row.hold)
				if err != io.EOF || !reflect.DeepEqual(got, row.want) {
					t.Errorf("%s, %s, small buffer %d: %+v, %v", row.name, how, small, got, err)
				}
			}
		}
	}
}

// A Reader that begins with bytes that were already read, in a buffer of any size, returns the same
// lines as a Reader that reads everything.
func TestReaderBegin(t *testing.T) {
	const large = 2 * smallBuffer
	for _, row := range []struct {
		hold int
		in   string
	}{
		{8, ""}, {8, "a\nbc\n"}, {8, "1234567\n1\n"}, {8, "12345678\n1\n"}, {8, "123456781234567\n1\n"}, {8, "123456789"}, {1, "a\nb\n"},
		{large, "a\n" + strings.Repeat("b", large) + "\nc\n"},
		{large, strings.Repeat("a", large-1) + "\n" + strings.Repeat("b", large-1) + "\nc\n"},
		{large, strings.Repeat("a", 3*large) + "\n" + strings.Repeat("b", smallBuffer) + "\nc\n"},
	} {
		want := splitLines([]byte(row.in), row.hold)
		first, _, _ := strings.Cut(row.in, "\n")
		for _, n := range []int{0, 1, 3, 8, idleBuffer, smallBuffer, large - 1, large} {
			for _, room := range []int{0, 1, 7, idleBuffer, 2 * large} {
				n = min(n, len(first), row.hold)
				begun := append(make([]byte, 0, n+room), row.in[:n]...)
				r := NewReader(iotest.HalfReader(strings.NewReader(row.in[n:])), row.hold).Begin(begun)
				if got, err := readLines(r, row.hold); err != io.EOF || !reflect.DeepEqual(got, want) {
					t.Errorf("limit %d, %d bytes of %d read before, room for %d more: %d lines, %v", row.hold, n, len(row.in), room, len(got), err)
				}
			}
		}
	}
}

// Lines may end exactly at, before and after the ends of the buffers, which have their real sizes
// here.
func TestReaderAtBufferEdges(t *testing.T) {
	const hold = 1 << 20
	var in bytes.Buffer
	var want []int
	for _, n := range []int{smallBuffer - 1, smallBuffer, smallBuffer + 1, 1, 2, smallBuffer/2 - 1, smallBuffer / 2, smallBuffer/2 + 1, 4*smallBuffer - 1, 4 * smallBuffer, 4*smallBuffer + 1, 10, hold - 1, hold, hold + 1, 10, 3 * hold, 1} {
		in.Write(bytes.Repeat([]byte{'a' + byte(len(want))}, n-1))
		in.WriteByte('\n')
		want = append(want, n)
	}
	all := bytes.Clone(in.Bytes())
	for _, pipe := range []int{1 << 12, 1 << 16, 1<<16 - 1, 12345, 1 << 24} {
		r := NewReader(&limitedReader{bytes.NewReader(all), pipe}, hold)
		rest := all
		for i, n := range want {
			got := 0
			for more := true; more; {
				var line []byte
				var err error
				if line, more, err = r.Next(); err != nil || !bytes.HasPrefix(rest, line) || len(line) > hold {
					t.Fatalf("line %d, %d bytes at a time: %v", i, pipe, err)
				}
				if got += len(line); n <= hold && more {
					t.Fatalf("line %d of %d bytes was streamed", i, n)
				}
				rest = rest[len(line):]
			}
			if got != n {
				t.Fatalf("line %d has %d bytes, want %d", i, got, n)
			}
		}
		if _, _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	}
}

type limitedReader struct {
	src io.Reader
	n   int
}

func (p *limitedReader) Read(b []byte) (int, error) { return p.src.Read(b[:min(len(b), p.n)]) }

func TestReaderErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, with := range []bool{false, true} {
		src := io.MultiReader(strings.NewReader("a\nb\nc"), iotest.ErrReader(broken))
		if with {
			src = &onceReader{data: []byte("a\nb\nc"), err: broken}
		}
		r := NewReader(src, 0)
		for _, want := range []string{"a\n", "b\n", "c"} {
			line, more, err := r.Next()
			if string(line) != want || more || err != nil {
				t.Errorf("%q, %v, %v; want %q", line, more, err, want)
			}
		}
		for range 3 {
			if line, more, err := r.Next(); line != nil || more || err != broken {
				t.Errorf("%q, %v, %v at the end", line, more, err)
			}
		}
	}
	r := NewReader(&onceReader{}, 0)
	if _, _, err := r.Next(); err != io.ErrNoProgress {
		t.Errorf("a source without bytes and error: %v, want io.ErrNoProgress", err)
	}
}

// A onceReader returns its bytes and its error in the first Read, and then no bytes.
type onceReader struct {
	data []byte
	err  error
}

func (p *onceReader) Read(b []byte) (int, error) {
	n := copy(b, p.data)
	p.data = nil
	return n, p.err
}

func TestOnLongLine(t *testing.T) {
	r := newReader(strings.NewReader("12345678\n1234567\n"+strings.Repeat("x", 30)+"\n1\n"), 1000, 8)
	calls := 0
	r.OnLongLine(func() { calls++ })
	for i, want := range []int{1, 1, 1, 1} { // the callback is called only once
		if _, _, err := r.Next(); err != nil || calls != want {
			t.Errorf("line %d: %d calls, %v", i, calls, err)
		}
	}
}

func TestAppendToLine(t *testing.T) {
	r := NewReader(strings.NewReader("a\nb\nc"), 0)
	for _, want := range []string{"a\n", "b\n", "c"} {
		line, _, err := r.Next()
		if string(line) != want || err != nil {
			t.Errorf("%q, %v", line, err)
		}
		_ = append(line, "!!!"...)
	}
}

func TestBuffered(t *testing.T) {
	r := NewReader(&limitedReader{strings.NewReader("a\nb\nccc\nd"), 6}, 0)
	for i, want := range []bool{false, true, false, false} {
		if i > 0 {
			if _, _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := r.Buffered(); got != want {
				t.Errorf("Buffered after line %d: %v", i, got)
			}
		}
	}
}

// longLine is a source of one line of n bytes and its newline.
type longLine struct{ n int }

func (l *longLine) Read(b []byte) (int, error) {
	if l.n < 0 {
		return 0, io.EOF
	}
	b = b[:min(len(b), 64<<10)]
	if l.n < len(b) {
		b = b[:l.n+1]
	}
	for i := range b {
		b[i] = 'x'
	}
	if l.n -= len(b); l.n < 0 {
		b[len(b)-1] = '\n'
	}
	return len(b), nil
}

// A line over the hold limit is streamed in chunks and takes no more memory than the limit.
func TestReaderStreamsInBoundedMemory(t *testing.T) {
	const n = 1 << 27 // 16 times the hold limit
	r := NewReader(&longLine{n}, 0)
	var w Writer
	w.dst = io.Discard
	var e Envelope
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, chunks := 0, 0
	for more := true; more; {
		line, m, err := r.Next()
		check(t, err)
		more = m
		got += len(line)
		chunks++
		e.Feed(line)
		w.Chunk(line, more)
	}
	runtime.ReadMemStats(&after)
	if got != n+1 {
		t.Errorf("%d bytes, want %d", got, n+1)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 2*DefaultHold {
		t.Errorf("%d bytes allocated for %d chunks", total, chunks)
	}
	if len(r.buf) > DefaultHold {
		t.Errorf("the buffer has %d bytes", len(r.buf))
	}
}

// An idle Reader has no large buffer, also after long lines. The next long line reuses the buffer
// that was freed.
func TestReaderFreesBuffers(t *testing.T) {
	for _, size := range []int{smallBuffer, 100 << 10, longBuffer, longBuffer + 1, 1 << 20, DefaultHold - 1, DefaultHold, 3 * DefaultHold} {
		line := append(bytes.Repeat([]byte{'x'}, size), '\n')
		in := append(append(bytes.Clone(line), "short\n"...), line...)
		src := &watchedReader{src: bytes.NewReader(append(in, "part"...))}
		r := NewReader(src, 0)
		src.read = func() {
			if r.start == r.end && !r.long && len(r.buf) > smallBuffer {
				t.Errorf("after lines of %d bytes, the Reader waits with a buffer of %d", size, len(r.buf))
			}
		}
		for i, want := range []int{len(line), 6, len(line), 4} {
			got := 0
			for more := true; more; {
				chunk, m, err := r.Next()
				check(t, err)
				got, more = got+len(chunk), m
			}
			if got != want {
				t.Errorf("line %d has %d bytes, want %d", i, got, want)
			}
		}
	}
}

// A watchedReader calls read before each Read. Its reads are as small as those of a pipe.
type watchedReader struct {
	src  io.Reader
	read func()
}

func (w *watchedReader) Read(b []byte) (int, error) {
	w.read()
	return w.src.Read(b[:min(len(b), smallBuffer)])
}

// A frame that is not edited causes no allocations.
func TestUntouchedFramesAllocateNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		peer Peer
		line string
	}{
		{"call", Client, toolsCall(`"x"`)},
		{"call with non-ASCII and escapes", Client, toolsCall(`"größe\n\u00e9"`)},
		{"call with many arguments", Client, toolsCall(`{"a":1,"b":[1,2,3],"c":{"d":null,"longer than eight":true}}`)},
		{"call of 100 KiB", Client, toolsCall(`"` + strings.Repeat("x", 100<<10) + `"`)},
		{"reply, go-sdk", Server, replyGo(`"x"`)},
		{"reply, TypeScript", Server, replyTS(`"` + strings.Repeat(`\"x`, 1000) + `"`)},
		{"reply of 100 KiB", Server, replyTS(`"` + strings.Repeat("x", 100<<10) + `"`)},
	} {
		r := NewReader(&stream{data: []byte(row.line + "\n")}, 0)
		w := NewWriter(io.Discard)
		s := Scanner{ArgumentNames: argumentNames}
		var m Message
		relay := func() {
			line, more, err := r.Next()
			if err != nil || more {
				t.Fatal(more, err)
			}
			m.Reset(row.peer, line)
			if row.peer == Client {
				s.Look(&m)
			} else {
				m.LookEnvelope()
			}
			if !m.Plain() || m.ID() == nil || m.Kind() == Unreadable {
				t.Fatal(m.Ambiguity())
			}
			m.MethodIs("tools/call")
			m.Method()
			w.Write(&m)
			if !r.Buffered() {
				w.Flush()
			}
		}
		for range 100 {
			relay()
		}
		if n := testing.AllocsPerRun(200, relay); n > 0 {
			t.Errorf("%s: %v allocations", row.name, n)
		}
	}
}

// A Reader chooses its buffer by the size of the last read, and a larger buffer for a longer line.
func TestReaderChoosesBuffers(t *testing.T) {
	const hold = 4 << 20
	var r *Reader
	var reads [][]byte // what the source returns, one at a time
	first := 0         // size of the buffer at the first byte of a line
	r = NewReader(readFunc(func(b []byte) (int, error) {
		if r.start == r.end {
			first = len(r.buf)
		}
		n := copy(b, reads[0])
		if reads[0] = reads[0][n:]; len(reads[0]) == 0 {
			reads = reads[1:]
		}
		return n, nil
	}), hold)
	for _, row := range []struct {
		line, piece int // bytes of the line, and of each read
		first, last int // size of the buffer at the first and the last byte
	}{
		{10, 10, idleBuffer, idleBuffer},
		{idleBuffer - 1, idleBuffer, idleBuffer, idleBuffer},
		{idleBuffer, idleBuffer, idleBuffer, idleBuffer},
		{10, 10, smallBuffer, smallBuffer},
		{10, 10, idleBuffer, idleBuffer},
		{idleBuffer + 1, 1000, idleBuffer, smallBuffer},
		{smallBuffer, 1000, idleBuffer, smallBuffer},
		{smallBuffer + 1, 1000, idleBuffer, longBuffer},
		{longBuffer, 1000, idleBuffer, longBuffer},
		{longBuffer + 1, 1000, idleBuffer, hold},
		{hold, hold, idleBuffer, hold},
		{10, 10, smallBuffer, smallBuffer},
	} {
		line := append(bytes.Repeat([]byte{'x'}, row.line-1), '\n')
		reads = slices.Collect(slices.Chunk(line, row.piece))
		got, more, err := r.Next()
		if !bytes.Equal(got, line) || more || err != nil {
			t.Fatalf("a line of %d: %d bytes, %v, %v", row.line, len(got), more, err)
		}
		if last := len(r.buf); first != row.first || last != row.last {
			t.Errorf("a line of %d began in a buffer of %d and ended in one of %d, want %d and %d", row.line, first, last, row.first, row.last)
		}
	}
}

// A line that is as long as the one before it, and arrives at once, takes one read.
func TestReaderReadsOnce(t *testing.T) {
	for _, size := range []int{10, idleBuffer - 1, idleBuffer, idleBuffer + 1, 2*idleBuffer - 1, 2 * idleBuffer, 3 * idleBuffer, smallBuffer} {
		line := append(bytes.Repeat([]byte{'x'}, size-1), '\n')
		var rest []byte
		reads := 0
		r := NewReader(readFunc(func(b []byte) (int, error) {
			n := copy(b, rest)
			rest = rest[n:]
			reads++
			return n, nil
		}), 0)
		for range 3 {
			rest, reads = line, 0
			if _, _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if reads != 1 {
			t.Errorf("the third line of %d took %d reads", size, reads)
		}
	}
}

// A Reader begins with an idle buffer if its limit is at least the size of a small buffer.
func TestReaderWithSmallLimit(t *testing.T) {
	for hold, want := range map[int]int{smallBuffer - 1: smallBuffer - 1, smallBuffer: idleBuffer} {
		if r := NewReader(strings.NewReader(""), hold); len(r.buf) != want {
			t.Errorf("a limit of %d: a buffer of %d, want %d", hold, len(r.buf), want)
		}
	}
}

type readFunc func(b []byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }
