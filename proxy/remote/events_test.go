package remote

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An eventRecorder records the events of a parser as text.
type eventRecorder struct {
	p    *eventParser
	part strings.Builder
	all  []string
}

func (g *eventRecorder) data(b []byte) { g.part.Write(b) }

func (g *eventRecorder) event(name []byte) {
	g.all = append(g.all, fmt.Sprintf("%s|%s|%s|%v", name, g.part.String(), g.p.id, g.p.retry))
	g.part.Reset()
}

// parse reads a stream in chunks of n bytes.
func parse(stream string, n int) string {
	g := &eventRecorder{}
	g.p = newEventParser(g)
	for len(stream) > 0 {
		m := min(n, len(stream))
		g.p.feed([]byte(stream[:m]))
		stream = stream[m:]
	}
	return strings.Join(append(g.all, g.part.String()), "\n")
}

// The examples and rules of WHATWG HTML, "Server-sent events".
func TestU02Events(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stream string
		want   []string // name|data|id|retry of each event, then the data of an unterminated one
	}{
		{"data: a\n\n", []string{"|a||-1ns", ""}},
		{"data:a\n\ndata:  a\n\n", []string{"|a||-1ns", "| a||-1ns", ""}},
		{"data: a\ndata: b\n\n", []string{"|a b||-1ns", ""}},
		{"data\n\ndata\ndata\n\ndata:", []string{"|||-1ns", "| ||-1ns", ""}},
		{"event: ping\ndata: a\nid: 7\nretry: 20\n\ndata: b\n\n", []string{"ping|a|7|20ms", "|b|7|20ms", ""}},
		{"id: 7\n\nid\ndata: b\n\n", []string{"||7|-1ns", "|b||-1ns", ""}},
		{"id: a\x00b\ndata: b\n\n", []string{"|b||-1ns", ""}},
		{"retry: 1s\ndata: b\n\nretry:\n\n", []string{"|b||-1ns", "|||-1ns", ""}},
		{": comment\r\n\r\ndata: a\r\n\r\n", []string{"|||-1ns", "|a||-1ns", ""}},
		{"data: a\r\rdata: b\r\n\rdata: c\n\r", []string{"|a||-1ns", "|b||-1ns", "|c||-1ns", ""}},
		{"\xEF\xBB\xBFdata: a\n\n", []string{"|a||-1ns", ""}},
		{"data : a\nDATA: b\nunknownfield: x\n\n", []string{"|||-1ns", ""}},
		{"data: a:b\n\n", []string{"|a:b||-1ns", ""}},
		{"data: a", []string{"a"}},
		{"data: é\u2028\n\n", []string{"|é\u2028||-1ns", ""}},
		{"id: " + strings.Repeat("x", maxValue+1) + "\ndata: a\n\n", []string{"|a||-1ns", ""}},
	} {
		want := strings.Join(c.want, "\n")
		for n := 1; n <= len(c.stream); n++ { // every chunk boundary
			if got := parse(c.stream, n); got != want {
				t.Errorf("%.60q in chunks of %d:\ngot  %q\nwant %q", c.stream, n, got, want)
				break
			}
		}
	}
}

// FuzzEvents parses a stream whole and in two parts.
func FuzzEvents(f *testing.F) {
	f.Add("event: message\r\nid: 1\ndata: {\"a\":\ndata: 1}\r\n\r\n: x\n\n", 7)
	for _, n := range []int{maxField, maxValue, maxValue + 1} {
		long := strings.Repeat("x", n)
		f.Add("id: "+long+"\nevent: "+long+"\n"+long+": x\ndata: "+long+"\nretry: "+strings.Repeat("9", n)+"\n\n", n)
	}
	f.Fuzz(func(t *testing.T, stream string, at int) {
		if at < 0 || at > len(stream) {
			return
		}
		g := &eventRecorder{}
		g.p = newEventParser(g)
		g.p.feed([]byte(stream[:at]))
		g.p.feed([]byte(stream[at:]))
		if got, want := strings.Join(append(g.all, g.part.String()), "\n"), parse(stream, max(1, len(stream))); got != want {
			t.Errorf("%q in two parts: %q, whole: %q", stream, got, want)
		}
	})
}

// Messages in events are complete however the stream is cut, and even if the reader reuses its
// buffer.
func TestEventsInPieces(t *testing.T) {
	s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: bodies(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.cancel()
	out := bufio.NewReader(s.Stdout())
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := []byte(strings.ReplaceAll(`data: {"jsonrpc":"2.0","method":"a"}||data: {"jsonrpc":"2.0",|data: "method":"b"}||`, "|", end))
		const want = `{"jsonrpc":"2.0","method":"a"}` + "\n" + `{"jsonrpc":"2.0", "method":"b"}` + "\n"
		for n := 1; n <= len(stream); n++ {
			reader := &eventReader{x: &exchange{s: s}}
			reader.f.Out = s.out
			parser := newEventParser(reader)
			buf := make([]byte, n)
			for part := range slices.Chunk(stream, n) {
				parser.feed(buf[:copy(buf, part)])
				clear(buf)
			}
			s.out.Write([]byte("end\n"), nil)
			s.out.Flush()
			got := ""
			for line := ""; line != "end\n"; {
				got += line
				if line, err = out.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if got != want {
				t.Fatalf("lines end with %q, pieces of %d: got %q", end, n, got)
			}
		}
	}
}
