package revive

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A brokenServer is a server whose input takes a number of bytes and then fails.
type brokenServer struct{ takes int }

func (s *brokenServer) Write(b []byte) (int, error) {
	n := min(len(b), s.takes)
	if s.takes -= n; n < len(b) {
		return n, syscall.EPIPE
	}
	return n, nil
}

func (s *brokenServer) Close() error          { return nil }
func (s *brokenServer) Stdin() io.WriteCloser { return s }
func (s *brokenServer) Stdout() io.Reader     { return strings.NewReader("") }
func (s *brokenServer) Stop()                 {}
func (s *brokenServer) Wait() error           { return nil }

// A line that could not be written is kept once, and a server may have read a line of which only the
// line end was not written.
func TestUnsentOnce(t *testing.T) {
	for _, sizes := range [][2]int{{10, 10}, {100_000, 100_000}, {10, 100_000}} {
		line := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"x","params":{"n":%d,"p":"%s"}}`+"\n", n, strings.Repeat("x", sizes[n]))
		}
		first, second := line(0), line(1)
		for _, test := range []struct {
			takes int
			want  string
		}{
			{0, first + second},
			{len(first) - 2, first + second},
			{len(first) - 1, second},
			{len(first), second},
			{len(first) + 1, second},
		} {
			l := NewLink(LinkOptions{Limit: 1 << 20}, Ending{})
			l.Connect(&brokenServer{takes: test.takes})
			l.Open()
			var buffer []byte // both lines are in the same place
			for _, text := range []string{first, second} {
				var m wire.Message
				buffer = append(buffer[:0], text...)
				m.Reset(wire.Client, buffer)
				l.Write(&m)
			}
			_ = l.In.Flush()
			if got := string(l.Unsent.Sure()); got != test.want {
				t.Errorf("%d of %d bytes were written: %d bytes are unsent, want %d", test.takes, len(first), len(got), len(test.want))
			}
		}
	}
}

// Of a last line without a line end that the server may have read, not even a line end is left.
func TestUnsentWithoutLineEnd(t *testing.T) {
	const line = `{"jsonrpc":"2.0","method":"x"} `
	for takes, want := range map[int]string{len(line) - 2: line + "\n", len(line) - 1: ""} {
		l := NewLink(LinkOptions{Limit: 1 << 20}, Ending{})
		l.Connect(&brokenServer{takes: takes})
		l.Open()
		l.Write(wire.Parse(wire.Client, []byte(line))) // Leftover flushes it
		if got, _ := l.Leftover(0); string(got) != want {
			t.Errorf("%d of %d bytes were written: %q is unsent, want %q", takes, len(line), got, want)
		}
	}
}

// Parts of a long line are not kept for the next server, which would get a line without its beginning.
func TestNoPartOfALongLineIsUnsent(t *testing.T) {
	for takes := range 4 {
		l := NewLink(LinkOptions{Limit: 1 << 20}, Ending{})
		l.Connect(&brokenServer{takes: takes})
		l.Open()
		first, last := l.Chunk([]byte("{ "), true), l.Chunk([]byte("}\n"), false)
		if first == nil && last == nil {
			t.Errorf("%d bytes were written, and no error was returned", takes)
		}
		if got := l.Unsent.Take(); len(got) > 0 || l.Moved() != 2 {
			t.Errorf("%d bytes were written: %q is unsent, and %d chunks have moved", takes, got, l.Moved())
		}
	}
}

// Lines that were gathered before a long line are unsent if the server takes neither.
func TestLinesBeforeALongLineAreUnsent(t *testing.T) {
	const line = `{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n"
	for takes, want := range map[int]string{0: line, len(line): ""} {
		l := NewLink(LinkOptions{Limit: 1 << 20}, Ending{})
		l.Connect(&brokenServer{takes: takes})
		l.Open()
		l.Write(wire.Parse(wire.Client, []byte(line)))
		_ = l.Chunk([]byte("{ "), true)
		_ = l.Chunk([]byte("}\n"), false)
		if got := string(l.Unsent.Take()); got != want {
			t.Errorf("%d bytes were written: %q is unsent, want %q", takes, got, want)
		}
	}
}

// After a message of attache's own that cannot be written, the lines that were not sent are answered.
func TestQueueTellsOfUnsentLines(t *testing.T) {
	for takes, want := range map[int]bool{0: true, 100: false} {
		synctest.Test(t, func(t *testing.T) {
			l, late := NewLink(LinkOptions{}, Ending{}), false
			l.Connect(&brokenServer{takes: takes})
			l.Open()
			l.Queue(wire.Parse(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n")), func() { late = true })
			_ = l.In.Flush()
			if synctest.Wait(); late != want {
				t.Errorf("%d bytes were written: told of unsent lines: %t", takes, late)
			}
		})
	}
}

// A lineTaker keeps the reader that it is given.
type lineTaker struct{ from io.Reader }

func (*lineTaker) Line(*wire.Message, bool) error { return nil }

func (t *lineTaker) Lines(_ []byte, from io.Reader) error {
	t.from = from
	return nil
}

// A pipe can also be enlarged while the reads of it are counted.
func TestCountedPipeCanBeEnlarged(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.Check(t, err)
	defer r.Close()
	defer w.Close()
	for _, from := range []io.Reader{r, strings.NewReader("")} {
		to := &lineTaker{}
		testkit.Check(t, (linkOutput{to, NewLink(LinkOptions{Count: true}, Ending{})}).Lines(nil, from))
		c, ok := to.from.(syscall.Conn)
		if !ok {
			t.Fatalf("%T has no descriptor", to.from)
		}
		if _, err := c.SyscallConn(); (err == nil) != (from == io.Reader(r)) {
			t.Errorf("%T: %v", from, err)
		}
	}
}

// The lines that a server pushes are signs of life, too.
func TestPushedLinesAreCounted(t *testing.T) {
	for count, want := range map[bool]int64{true: 1, false: 0} {
		l := NewLink(LinkOptions{Count: count}, Ending{})
		testkit.Check(t, (linkOutput{new(lineTaker), l}).Line(new(wire.Message), false))
		if n := l.reads.Load(); n != want {
			t.Errorf("count is %t: %d lines were counted", count, n)
		}
	}
}

// Watch gets each line when it is written to the server, not while it waits in the gate.
func TestWatch(t *testing.T) {
	var got []string
	l := NewLink(LinkOptions{Limit: 1 << 20, Hold: time.Hour, Expired: func(*Link) {}, Watch: func(line []byte) { got = append(got, string(line)) }}, Ending{})
	l.Connect(&brokenServer{takes: 1 << 20})
	want := func(what string, lines ...string) {
		t.Helper()
		if !slices.Equal(got, lines) {
			t.Errorf("%s: Watch got %q, want %q", what, got, lines)
		}
	}
	write := func(line string) { l.Write(wire.Parse(wire.Client, []byte(line))) }
	write("1\n")
	write("2\n")
	want("before the server is ready")
	l.Gate.Open(l.stdin(), func(lines []byte) []byte { l.show(lines); return lines })
	want("when it is ready", "1\n", "2\n")
	write("3\n")
	want("after that", "1\n", "2\n", "3\n")
	l.Gate.Close()
	write("4\n")
	want("after its end", "1\n", "2\n", "3\n")
	if n := l.Moved(); n != 4 {
		t.Errorf("%d lines have moved", n)
	}
}
