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
)

// A sink keeps every write by itself.
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

func wantWrites(t *testing.T, s *sink, want ...string) {
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
		if err := w.Write(&m); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriterGathers(t *testing.T) {
	var s sink
	w := NewWriter(&s)
	write(t, w, "a\n", "bb\r\n", "\n", "")
	wantWrites(t, &s)
	w.Flush()
	wantWrites(t, &s, "a\nbb\r\n\n")
	w.Flush()
	wantWrites(t, &s)

	half := strings.Repeat("x", gather/2-1) + "\n"
	write(t, w, half, half)
	wantWrites(t, &s) // full to the brim
	write(t, w, "a\n")
	wantWrites(t, &s, half+half)
	long := strings.Repeat("y", gather) + "\n"
	write(t, w, long, "b\n")
	wantWrites(t, &s, "a\n", long)
	w.Flush()
	wantWrites(t, &s, "b\n")
}

func TestWriterKeepsNothingOfTheCaller(t *testing.T) {
	var s sink
	w := NewWriter(&s)
	line := []byte("abc\n")
	var m Message
	m.Reset(Client, line)
	w.Write(&m)
	copy(line, "xyz")
	w.Flush()
	wantWrites(t, &s, "abc\n")
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
		w.Queue([]byte("5\n"), nil) // leaves by itself
		synctest.Wait()
		wantWrites(t, &s, "5\n")
		write(t, w, "6\n")
		w.Queue([]byte("7\n"), nil) // takes what was kept along, before it
		synctest.Wait()
		wantWrites(t, &s, "6\n7\n")
		w.Queue([]byte("8\n"), nil)
		write(t, w, "9\n") // stays behind what was queued before it
		w.Flush()
		synctest.Wait()
		if got := strings.Join(s.take(), ""); got != "8\n9\n" {
			t.Errorf("written: %q", got)
		}
	})
}

// Lines of attache's own wait for the end of a line that streams by.
func TestWriterQueuesBehindChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		w := NewWriter(&s)
		write(t, w, "0\n")
		w.Chunk([]byte("aaa"), true)
		told := 0
		w.Queue([]byte("q1\n"), func(error) { told++ })
		synctest.Wait()
		w.Flush()
		w.Chunk([]byte("bbb"), true)
		w.Queue([]byte("q2\n"), func(error) { told++ })
		synctest.Wait()
		if told != 0 {
			t.Error("told that a line has left that waits")
		}
		wantWrites(t, &s, "0\n", "aaa", "bbb")
		w.Chunk([]byte("c\n"), false)
		if told != 2 {
			t.Errorf("told %d times", told)
		}
		wantWrites(t, &s, "c\n", "q1\nq2\n")
		write(t, w, "1\n")
		w.Flush()
		wantWrites(t, &s, "1\n")
	})
}

// A line that came without its newline, as the last of a stream, is given it
// when, and only when, another follows.
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

// A stuckSink blocks every Write until let is closed.
type stuckSink struct {
	sink
	let chan struct{}
}

func (s *stuckSink) Write(b []byte) (int, error) {
	<-s.let
	return s.sink.Write(b)
}

func TestQueueNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{let: make(chan struct{})}
		w := NewWriter(s)
		go func() {
			write(t, w, "line\n")
			w.Flush()
		}()
		synctest.Wait()
		var told []int
		var mu sync.Mutex
		want := "line\n"
		for i := range 1000 {
			w.Queue(fmt.Appendf(nil, "%d\n", i), func(error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, i)
			})
			want += fmt.Sprintf("%d\n", i)
		}
		mu.Lock()
		if len(told) != 0 {
			t.Error("told before anything has left")
		}
		mu.Unlock()
		close(s.let)
		synctest.Wait()
		if got := strings.Join(s.take(), ""); got != want {
			t.Errorf("written: %.100q", got)
		}
		if len(told) != 1000 || !slices.IsSorted(told) {
			t.Errorf("told of %d lines", len(told))
		}
	})
}

// What sent is told may itself use the writer.
func TestSentMayWrite(t *testing.T) {
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

func TestWriterErrorsStick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		s := &sink{err: gone}
		w := NewWriter(s)
		write(t, w, "a\n") // kept
		if err := w.Flush(); err != gone {
			t.Errorf("Flush: %v", err)
		}
		s.err = nil
		var m Message
		m.Reset(Client, []byte("b\n"))
		told := false
		w.Queue([]byte("q\n"), func(error) { told = true })
		synctest.Wait()
		for _, err := range []error{w.Write(&m), w.Flush(), w.Chunk([]byte("c"), true), w.Chunk(nil, false), w.Flush()} {
			if err != gone {
				t.Errorf("afterwards: %v", err)
			}
		}
		if !told {
			t.Error("not told of a line that cannot leave")
		}
		for range 100_000 {
			w.Write(&m)
		}
		if len(w.buf) > gather {
			t.Errorf("%d bytes are kept", len(w.buf))
		}
		wantWrites(t, s)
	})
}

// Every line stays whole and every queued one leaves once, whoever writes when.
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
			t.Fatalf("a line is not whole: %q", l.text)
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

// A tryPipe takes as much as it has room for, whole or not at all.
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

// TryFlush leaves what the peer has no room for to Flush, and nothing of it is lost.
func TestTryFlush(t *testing.T) {
	p := &tryPipe{room: 4}
	w := NewWriter(p)
	line := func(s string) {
		var m Message
		m.Reset(Client, []byte(s))
		if err := w.Write(&m); err != nil {
			t.Fatal(err)
		}
	}
	if !w.Ready() {
		t.Error("an idle Writer is not ready")
	}
	line("a\n")
	if w.Ready() || !w.TryFlush() || !w.TryFlush() || !w.Ready() {
		t.Error("the first line")
	}
	line("bcd\n")
	if w.TryFlush() || w.Ready() {
		t.Error("the second line was flushed, and there was no room")
	}
	line("e\n")
	if err := w.Flush(); err != nil || !w.Ready() {
		t.Error(err)
	}
	if got := strings.Join(p.taken, "|"); got != "a\n|bcd\ne\n" {
		t.Errorf("%q", got)
	}
	p.err = io.ErrClosedPipe
	line("f\n")
	if !w.TryFlush() || w.Flush() != io.ErrClosedPipe {
		t.Error("the error of the peer is not that of the Writer")
	}
	if NewWriter(&sink{}).Ready() {
		t.Error("a Writer is ready for a peer that may have to be waited for")
	}
}

// A choosyPeer takes the messages that are in takes, and has the others written.
type choosyPeer struct {
	takes string
	got   []string
}

func (p *choosyPeer) Write(b []byte) (int, error) {
	p.got = append(p.got, "written "+string(b))
	return len(b), nil
}

func (p *choosyPeer) Take(m *Message) bool {
	if !strings.Contains(p.takes, string(m.Frame())) {
		return false
	}
	p.got = append(p.got, "taken "+string(m.Line()))
	return true
}

// A Writer offers its peer each message before which nothing waits, so none overtakes another.
func TestWriterOffersMessages(t *testing.T) {
	p := &choosyPeer{takes: "acf"}
	w := NewWriter(p)
	line := func(s string) {
		var m Message
		m.Reset(Client, []byte(s))
		if err := w.Write(&m); err != nil {
			t.Fatal(err)
		}
	}
	line("a\n")
	line("b\n")
	line("c\n") // behind b
	w.Flush()
	line("c\n")
	line("") // nothing
	w.Chunk([]byte("d"), true)
	w.Chunk([]byte("e"), false)
	line("f\n") // behind the line end that the last line lacks
	w.Flush()
	line("f\n")
	w.Queue([]byte("q\n"), nil)
	line("f\n") // behind what was queued
	want := "taken a\n|written b\nc\n|taken c\n|written d|written e|written \nf\n|taken f\n|written q\n|taken f\n"
	if got := strings.Join(p.got, "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Close()
	line("a\n")
	if got := strings.Join(p.got, "|"); got != want || w.Flush() != os.ErrClosed {
		t.Errorf("a closed Writer goes on: %q", got)
	}
}
