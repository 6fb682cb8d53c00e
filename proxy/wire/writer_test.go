package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/internal/testkit"
)

// A sink records each write separately.
type sink struct {
	mu     sync.Mutex
	writes []string
	err    error
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.writes = append(s.writes, string(b))
	return len(b), nil
}

func (s *sink) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writes
	s.writes = nil
	return w
}

func checkWrites(t *testing.T, s *sink, want ...string) {
	t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		t.Errorf("written: %.300q, want %.300q", got, want)
	}
}

func write(t *testing.T, w *Writer, lines ...string) {
	t.Helper()
	for _, l := range lines {
		var m Message
		m.Reset(Client, []byte(l))
		check(t, w.Write(&m))
	}
}

func TestWriterBuffers(t *testing.T) {
	var s sink
	w := NewWriter(&s)
	write(t, w, "a\n", "bb\r\n", "\n", "")
	checkWrites(t, &s)
	w.Flush()
	checkWrites(t, &s, "a\nbb\r\n\n")
	w.Flush()
	checkWrites(t, &s)

	half := strings.Repeat("x", gather/2-1) + "\n"
	write(t, w, half, half)
	checkWrites(t, &s) // the buffer is exactly full
	write(t, w, "a\n")
	checkWrites(t, &s, half+half)
	long := strings.Repeat("y", gather) + "\n"
	write(t, w, long, "b\n")
	checkWrites(t, &s, "a\n", long)
	w.Flush()
	checkWrites(t, &s, "b\n")
}

func TestWriterCopiesLines(t *testing.T) {
	var s sink
	w := NewWriter(&s)
	line := []byte("abc\n")
	var m Message
	m.Reset(Client, line)
	w.Write(&m)
	copy(line, "xyz")
	w.Flush()
	checkWrites(t, &s, "abc\n")
}

func TestWriterOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		w := NewWriter(&s)
		write(t, w, "1\n")
		w.Queue([]byte("2\n"), nil)
		w.Queue([]byte("3\n"), nil)
		w.Flush()
		write(t, w, "4\n")
		w.Flush()
		synctest.Wait()
		if got := strings.Join(s.take(), ""); got != "1\n2\n3\n4\n" {
			t.Errorf("written: %q", got)
		}
		w.Queue([]byte("5\n"), nil) // is written without Flush
		synctest.Wait()
		checkWrites(t, &s, "5\n")
		write(t, w, "6\n")
		w.Queue([]byte("7\n"), nil) // is written together with the buffered line, after it
		synctest.Wait()
		checkWrites(t, &s, "6\n7\n")
		w.Queue([]byte("8\n"), nil)
		write(t, w, "9\n") // is written after the queued line
		w.Flush()
		synctest.Wait()
		if got := strings.Join(s.take(), ""); got != "8\n9\n" {
			t.Errorf("written: %q", got)
		}
	})
}

// Queued lines wait for the end of a line that is written in chunks.
func TestWriterQueuesBehindChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		w := NewWriter(&s)
		write(t, w, "0\n")
		w.Chunk([]byte("aaa"), true)
		sent := 0
		w.Queue([]byte("q1\n"), func(error) { sent++ })
		synctest.Wait()
		w.Flush()
		w.Chunk([]byte("bbb"), true)
		w.Queue([]byte("q2\n"), func(error) { sent++ })
		synctest.Wait()
		if sent != 0 {
			t.Error("sent was called for a line that waits")
		}
		checkWrites(t, &s, "0\n", "aaa", "bbb")
		w.Chunk([]byte("c\n"), false)
		if sent != 2 {
			t.Errorf("sent was called %d times, want 2", sent)
		}
		checkWrites(t, &s, "c\n", "q1\nq2\n")
		write(t, w, "1\n")
		w.Flush()
		checkWrites(t, &s, "1\n")
	})
}

// A line without a newline, such as the last one of a stream, gets a newline only if another line
// follows.
func TestWriterEndsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, unended := range map[string]func(w *Writer){
			"a line":       func(w *Writer) { write(t, w, "{}") },
			"a long line":  func(w *Writer) { write(t, w, "{"+strings.Repeat(" ", gather)+"}") },
			"chunks":       func(w *Writer) { w.Chunk([]byte("{"), true); w.Chunk([]byte("}"), false) },
			"a last chunk": func(w *Writer) { w.Chunk([]byte("{}"), true); w.Chunk(nil, false) },
			"a queued one": func(w *Writer) { w.Queue([]byte("{}"), nil); synctest.Wait() },
		} {
			for next, follow := range map[string]func(w *Writer){
				"":         func(w *Writer) { write(t, w, ""); w.Flush() },
				"a\n":      func(w *Writer) { write(t, w, "a\n") },
				"b\n":      func(w *Writer) { w.Chunk([]byte("b"), true); w.Chunk([]byte("\n"), false) },
				"c\nd\n":   func(w *Writer) { w.Queue([]byte("c\n"), nil); w.Queue([]byte("d\n"), nil); synctest.Wait() },
				"e\n\nf\n": func(w *Writer) { write(t, w, "e\n", "\n", "f\n") },
			} {
				var s sink
				w := NewWriter(&s)
				unended(w)
				follow(w)
				w.Flush()
				got := strings.ReplaceAll(strings.Join(s.take(), ""), " ", "")
				want := "{}"
				if next != "" {
					want += "\n" + next
				}
				if got != want {
					t.Errorf("%s, then %q: %q", name, next, got)
				}
			}
		}
	})
}

// A blockedSink blocks its writes until unblock is closed.
type blockedSink struct {
	sink
	unblock chan struct{}
}

func (s *blockedSink) Write(b []byte) (int, error) {
	<-s.unblock
	return s.sink.Write(b)
}

func TestQueueNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blockedSink{unblock: make(chan struct{})}
		w := NewWriter(s)
		go func() {
			write(t, w, "line\n")
			w.Flush()
		}()
		synctest.Wait()
		var sent []int
		var mu sync.Mutex
		want := "line\n"
		for i := range 1000 {
			w.Queue(fmt.Appendf(nil, "%d\n", i), func(error) {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, i)
			})
			want += fmt.Sprintf("%d\n", i)
		}
		mu.Lock()
		if len(sent) != 0 {
			t.Error("sent was called before anything was written")
		}
		mu.Unlock()
		close(s.unblock)
		synctest.Wait()
		if got := strings.Join(s.take(), ""); got != want {
			t.Errorf("written: %.100q", got)
		}
		if len(sent) != 1000 || !slices.IsSorted(sent) {
			t.Errorf("sent was called for %d lines, want 1000 in order", len(sent))
		}
	})
}

// A function that was passed to Queue may use the Writer when it is called.
func TestSentCallbackMayWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		w := NewWriter(&s)
		w.Queue([]byte("a\n"), func(error) {
			write(t, w, "b\n")
			w.Queue([]byte("c\n"), func(error) { w.Flush() })
		})
		synctest.Wait()
		if got := strings.Join(s.take(), ""); got != "a\nb\nc\n" {
			t.Errorf("written: %q", got)
		}
	})
}

func TestWriterErrorsArePermanent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		s := &sink{err: gone}
		w := NewWriter(s)
		write(t, w, "a\n") // buffered
		if err := w.Flush(); err != gone {
			t.Errorf("Flush: %v", err)
		}
		s.err = nil
		var m Message
		m.Reset(Client, []byte("b\n"))
		sent := false
		w.Queue([]byte("q\n"), func(error) { sent = true })
		synctest.Wait()
		for _, err := range []error{w.Write(&m), w.Flush(), w.Chunk([]byte("c"), true), w.Chunk(nil, false), w.Flush()} {
			if err != gone {
				t.Errorf("afterwards: %v", err)
			}
		}
		if !sent {
			t.Error("sent was not called for a line that cannot be written")
		}
		for range 100_000 {
			w.Write(&m)
		}
		if len(w.buf) > gather {
			t.Errorf("%d bytes are kept", len(w.buf))
		}
		checkWrites(t, s)
	})
}

// With concurrent writers, every line stays complete and every queued line is written once.
func TestWriterConcurrently(t *testing.T) {
	r, dst := io.Pipe()
	w := NewWriter(dst)
	const each = 300
	var senders, sent sync.WaitGroup
	for q := range 3 {
		sent.Add(each)
		senders.Go(func() {
			for i := range each {
				w.Queue(fmt.Appendf(nil, "q%d-%d\n", q, i), func(error) { sent.Done() })
			}
		})
	}
	senders.Go(func() {
		for i := range each {
			switch i % 3 {
			case 0:
				write(t, w, fmt.Sprintf("l-%d\n", i))
			case 1:
				w.Chunk(fmt.Appendf(nil, "c-%d-", i), true)
				w.Chunk([]byte(strings.Repeat("x", i)), true)
				w.Chunk([]byte("\n"), false)
			default:
				w.Flush()
			}
		}
	})
	go func() {
		senders.Wait()
		sent.Wait()
		w.Flush()
		dst.Close()
	}()
	lines, err := readLines(NewReader(r, 0), DefaultHold)
	if err != io.EOF {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, l := range lines {
		var i int
		kind, rest, _ := strings.Cut(strings.TrimSuffix(l.text, "\n"), "-")
		fmt.Sscanf(rest, "%d", &i)
		if want := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i)); kind == "c" && rest != want || kind != "c" && rest != fmt.Sprint(i) {
			t.Fatalf("an incomplete line: %q", l.text)
		}
		if kind[0] != 'q' {
			kind = "l"
		}
		if i < next[kind] {
			t.Fatalf("%q is out of order", l.text)
		}
		next[kind] = i + 1
	}
	if len(lines) != 3*each+2*each/3 {
		t.Errorf("%d lines", len(lines))
	}
}

// A tryPipe writes data completely if it has room, or else not at all.
type tryPipe struct {
	room  int
	err   error
	taken []string
}

func (p *tryPipe) Write(b []byte) (int, error) {
	p.taken = append(p.taken, string(b))
	return len(b), p.err
}

func (p *tryPipe) TryWrite(b []byte) (bool, error) {
	if p.err != nil || len(b) > p.room {
		return false, p.err
	}
	p.room -= len(b)
	p.taken = append(p.taken, string(b))
	return true, nil
}

// If the peer has no room, TryFlush keeps the data for Flush.
func TestTryFlush(t *testing.T) {
	p := &tryPipe{room: 4}
	w := NewWriter(p)
	if !w.Ready() {
		t.Error("an idle Writer is not ready")
	}
	write(t, w, "a\n")
	if w.Ready() || !w.TryFlush() || !w.TryFlush() || !w.Ready() {
		t.Error("the first line was not flushed")
	}
	write(t, w, "bcd\n")
	if w.TryFlush() || w.Ready() {
		t.Error("the second line was flushed without room")
	}
	write(t, w, "e\n")
	if err := w.Flush(); err != nil || !w.Ready() {
		t.Error(err)
	}
	if got := strings.Join(p.taken, "|"); got != "a\n|bcd\ne\n" {
		t.Errorf("%q", got)
	}
	p.err = io.ErrClosedPipe
	write(t, w, "f\n")
	if !w.TryFlush() || w.Flush() != io.ErrClosedPipe {
		t.Error("the Writer does not return the error of the peer")
	}
	if NewWriter(&sink{}).Ready() {
		t.Error("a Writer is ready although its peer has no TryWrite")
	}
}

// A selectivePeer accepts the messages in takes with Take. The Writer must write the others.
type selectivePeer struct {
	takes string
	got   []string
}

func (p *selectivePeer) Write(b []byte) (int, error) {
	p.got = append(p.got, "written "+string(b))
	return len(b), nil
}

func (p *selectivePeer) Take(m *Message) bool {
	if !strings.Contains(p.takes, string(m.Frame())) {
		return false
	}
	p.got = append(p.got, "taken "+string(m.Line()))
	return true
}

// A Writer offers a message to its peer only if nothing is buffered before it, so that no message
// overtakes another.
func TestWriterOffersMessages(t *testing.T) {
	p := &selectivePeer{takes: "acf"}
	w := NewWriter(p)
	write(t, w, "a\n", "b\n", "c\n") // c after b
	w.Flush()
	write(t, w, "c\n", "") // the second is not a message
	w.Chunk([]byte("d"), true)
	w.Chunk([]byte("e"), false)
	write(t, w, "f\n") // after the line end that the last line lacks
	w.Flush()
	write(t, w, "f\n")
	w.Queue([]byte("q\n"), nil)
	write(t, w, "f\n") // after the queued line
	want := "taken a\n|written b\nc\n|taken c\n|written d|written e|written \nf\n|taken f\n|written q\n|taken f\n"
	if got := strings.Join(p.got, "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Close()
	write(t, w, "a\n")
	if got := strings.Join(p.got, "|"); got != want || w.Flush() != os.ErrClosed {
		t.Errorf("a closed Writer still writes: %q", got)
	}
}

var check = testkit.Check
