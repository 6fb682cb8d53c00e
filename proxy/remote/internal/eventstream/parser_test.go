package eventstream

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An eventRecorder records the events of a parser as text.
type eventRecorder struct {
	p    *Parser
	part strings.Builder
	all  []string
}

func (g *eventRecorder) Data(b []byte) { g.part.Write(b) }

func (g *eventRecorder) Event(name []byte) {
	g.all = append(g.all, fmt.Sprintf("%s|%s|%s|%v", name, g.part.String(), g.p.ID, g.p.Retry))
	g.part.Reset()
}

// parse reads a stream in chunks of n bytes.
func parse(stream string, n int) string {
	g := &eventRecorder{}
	g.p = New(g)
	for len(stream) > 0 {
		m := min(n, len(stream))
		g.p.Feed([]byte(stream[:m]))
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
		{"data: a\r\n\ndata: b\n\n", []string{"|a||-1ns", "|b||-1ns", ""}},
		{"\xEF\xBB\xBFdata: a\n\n", []string{"|a||-1ns", ""}},
		{"data: \uFEFFa\n\n", []string{"|\uFEFFa||-1ns", ""}},
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

// FuzzEvents parses a stream whole and in two parts, and compares both with eventsOf.
func FuzzEvents(f *testing.F) {
	f.Add("event: message\r\nid: 1\ndata: {\"a\":\ndata: 1}\r\n\r\n: x\n\n", 7)
	f.Add(mark+mark+"data:1\r\ndata\rdata : 2\n\nretry: 1_0\nid:b\nid: a\x00\n\nretry: 007\nDATA: 3\nid\n\nevent: x", 4)
	for _, n := range []int{maxField, maxValue, maxValue + 1} {
		long := strings.Repeat("x", n)
		f.Add("id: "+long+"\nevent: "+long+"\n"+long+": x\ndata: "+long+"\nretry: "+strings.Repeat("9", n)+"\n\n", n)
	}
	f.Fuzz(func(t *testing.T, stream string, at int) {
		if at < 0 || at > len(stream) {
			return
		}
		g := &eventRecorder{}
		g.p = New(g)
		g.p.Feed([]byte(stream[:at]))
		g.p.Feed([]byte(stream[at:]))
		whole := parse(stream, max(1, len(stream)))
		if got := strings.Join(append(g.all, g.part.String()), "\n"); got != whole {
			t.Errorf("%q in two parts: %q, whole: %q", stream, got, whole)
		}
		if want := eventsOf(stream); whole != want {
			t.Errorf("%q: %q, want %q", stream, whole, want)
		}
	})
}

// eventsOf returns the same as parse, but follows the text of the standard: it splits the stream into lines
// first.
func eventsOf(stream string) string {
	body, whole := strings.CutPrefix(stream, mark)
	for n := len(mark) - 1; n > 0 && !whole; n-- { // see Feed for a part of a mark
		body, whole = strings.CutPrefix(stream, mark[:n])
	}
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n"), "\n")
	var events, data []string
	var name, id, nextID string
	retry := time.Duration(-1)
	for i, line := range lines {
		ended := i < len(lines)-1
		field, value, colon := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && ended:
			id = nextID
			events = append(events, fmt.Sprintf("%s|%s|%s|%v", name, strings.Join(data, " "), id, retry))
			name, data = "", nil
		case field == "data" && (ended || colon): // data is passed on before its line ends
			data = append(data, value)
		case !ended, len(value) > maxValue:
		case field == "event":
			name = value
		case field == "id" && !strings.Contains(value, "\x00"):
			nextID = value
		case field == "retry":
			// Digits alone; more than some days are ignored.
			if ms, err := strconv.Atoi(value); err == nil && strings.Trim(value, "0123456789") == "" && ms < 1<<31 {
				retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return strings.Join(append(events, strings.Join(data, " ")), "\n")
}
