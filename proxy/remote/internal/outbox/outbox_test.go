package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A recorder is a relay that records its lines. If take is set, its error refuses a line.
type recorder struct {
	take func(line string) error

	mu    sync.Mutex
	in    bool // a call is running
	lines []string
	more  []bool
	ended int
}

func (r *recorder) enter() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in || r.ended > 0 {
		panic("two concurrent calls, or a call after End")
	}
	r.in = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.in = false
	}
}

func (r *recorder) Line(m *wire.Message, more bool) error {
	defer r.enter()()
	line := string(m.Line())
	if m.Kind() != wire.Unreadable {
		if err := checkScan(m); err != nil {
			panic(err)
		}
	}
	if r.take != nil {
		if err := r.take(line); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines, r.more = append(r.lines, line), append(r.more, more)
	return nil
}

func (r *recorder) Lines(begun []byte, from io.Reader) error {
	defer r.enter()()
	all, err := io.ReadAll(io.MultiReader(bytes.NewReader(begun), from))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines, r.more = append(r.lines, string(all)), append(r.more, false)
	return err
}

func (r *recorder) End() {
	defer r.enter()()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
}

// checkScan returns an error if the scan of a message has another result than a new scan of
// its bytes.
func checkScan(m *wire.Message) error {
	var fresh wire.Message
	fresh.Reset(wire.Server, m.Line())
	if m.Looked() {
		new(wire.Scanner).Look(&fresh)
	} else {
		fresh.LookEnvelope()
	}
	describe := func(m *wire.Message) string {
		return fmt.Sprintf("%q %q %v %v %q %q %q %q %q", m.Frame(), m.LineEnd(), m.Kind(), m.Ambiguity(), m.ID(), m.Method(), m.Params().Raw, m.Result().Raw, m.ErrorObject().Raw)
	}
	if got, want := describe(m), describe(&fresh); got != want || m.Looked() && !m.Plain() {
		return fmt.Errorf("scanned %s, want %s", got, want)
	}
	return nil
}

// message returns a notification with a text of that many letters.
func message(name string, letters int) string {
	return `{"jsonrpc":"2.0","method":"` + name + `","params":"` + strings.Repeat("x", letters) + `"}`
}

// The messages of many concurrent responses arrive complete, those of each response in order, and
// the end comes last.
func TestManyAnswers(t *testing.T) {
	const answers, messages, limit = 8, 20, 2 * firstRoom
	synctest.Test(t, func(t *testing.T) {
		r, o := &recorder{}, New(limit)
		var all sync.WaitGroup
		for a := range answers {
			all.Go(func() {
				f := &Frame{Out: o}
				for n := range messages {
					// Some of these lengths are gathered, some are passed alone, and some exceed the limit.
					text := message(fmt.Sprintf("%d/%d", a, n), []int{10, 1000, maxGathered, firstRoom, 3 * firstRoom, 2 * limit}[(a*n)%17%6])
					for part := range slices.Chunk([]byte(text), 30000) {
						f.Put(part)
					}
					if m := f.End(); m == nil {
						t.Errorf("%.60s is no message", text)
					}
					f.Deliver()
					if n%3 == 0 {
						o.Flush()
					}
				}
				o.Flush()
			})
		}
		o.Push(r)
		all.Wait()
		o.End()
		synctest.Wait()
		if r.ended != 1 || len(r.lines) != answers*messages || o.kept.Load() != 0 {
			t.Fatalf("%d lines, %d ends, %d bytes kept", len(r.lines), r.ended, o.kept.Load())
		}
		var next [answers]int
		for _, line := range r.lines {
			var a, n int
			if _, err := fmt.Sscanf(line, `{"jsonrpc":"2.0","method":"%d/%d"`, &a, &n); err != nil || next[a] != n || !strings.HasSuffix(line, "\"}\n") {
				t.Fatalf("got message %d/%d, want number %d, %v", a, n, next[a], err)
			}
			next[a]++
		}
	})
}

// Lines that come while the relay handles others are passed together, and a slow relay blocks
// callers only when many lines wait.
func TestLinesWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r, o := &recorder{take: func(string) error { <-release; return nil }}, New(0)
		o.Push(r)
		synctest.Wait()
		put := func(line string) { o.Write([]byte(line), nil); o.Flush() }
		go put("first\n")
		synctest.Wait()
		put("second\n")
		put("third\n")
		full := make(chan struct{})
		go func() {
			put(strings.Repeat("x", maxGathered-1) + "\n")
			put(strings.Repeat("x", maxGathered-1) + "\n") // there is no room for it
			close(full)
		}()
		synctest.Wait()
		select {
		case <-full:
			t.Error("the number of waiting lines has no limit")
		default:
		}
		o.End()
		o.Write([]byte("too late\n"), nil)
		close(release)
		<-full
		synctest.Wait()
		if got := fmt.Sprint(len(r.lines), r.more, r.ended); got != "4 [false true true false] 1" {
			t.Errorf("got %s", got)
		}
	})
}

// All messages that one read returns are passed in order, also if they are more than may wait.
func TestManyLinesInOneRead(t *testing.T) {
	for _, letters := range []int{10, maxGathered - 100} {
		synctest.Test(t, func(t *testing.T) {
			release, done := make(chan struct{}), make(chan struct{})
			r, o := &recorder{take: func(string) error { <-release; return nil }}, New(0)
			o.Push(r)
			synctest.Wait()
			var want []string
			for n := range 2*maxWaiting + 2 {
				want = append(want, message(fmt.Sprint(n), letters)+"\n")
			}
			go func() {
				for _, line := range want {
					o.Write([]byte(line), nil)
				}
				o.Flush()
				close(done)
			}()
			synctest.Wait()
			const other = "of another response\n"
			o.Write([]byte(other), nil)
			o.Flush()
			close(release)
			<-done
			o.End()
			synctest.Wait()
			got := slices.DeleteFunc(slices.Clone(r.lines), func(line string) bool { return line == other })
			if !slices.Equal(got, want) || len(r.lines) != len(got)+1 || r.ended != 1 {
				t.Errorf("%d lines, %d ends", len(r.lines), r.ended)
			}
		})
	}
}

// A reader of a response may still call Flush after the end of the session. The relay gets one end.
func TestFlushAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := &recorder{}, New(0)
		o.Push(r)
		synctest.Wait()
		o.Write([]byte("waiting\n"), nil)
		o.End()
		o.Flush()
		o.Write([]byte(strings.Repeat("x", 2*maxGathered)+"\n"), nil)
		synctest.Wait()
		if len(r.lines) != 1 || r.ended != 1 {
			t.Errorf("%d lines, %d ends", len(r.lines), r.ended)
		}
	})
}

// The id of a long message is found wherever it is.
func TestIDOfLongMessage(t *testing.T) {
	result := `"result":"` + strings.Repeat("x", 4*firstRoom) + `"`
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,` + result + `}`, `{"jsonrpc":"2.0",` + result + `,"id":1}`} {
		o := New(0)
		o.Push(&recorder{})
		f := &Frame{Out: o}
		for part := range slices.Chunk([]byte(text), firstRoom) {
			f.Put(part)
		}
		if m := f.End(); m.Kind() != wire.Result || string(m.ID()) != "1" {
			t.Errorf("%.30s: got %v with id %s", text, m.Kind(), m.ID())
		}
		f.Reset()
	}
}

// A relay that fails gets only the end, even if it was reading a message.
func TestFailedRelay(t *testing.T) {
	for _, size := range []int{10, maxGathered, firstRoom} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			r, o := &recorder{take: func(string) error { calls++; return errors.New("the client is gone") }}, New(0)
			o.Push(r)
			for range 3 {
				f := &Frame{Out: o}
				f.Put([]byte(message("a", size)))
				f.End()
				f.Deliver()
				o.Flush()
			}
			o.End()
			synctest.Wait()
			want, wantCalls := 0, 1
			if size == firstRoom {
				want, wantCalls = 3, 0 // the recorder reads a long message itself
			}
			if len(r.lines) != want || calls != wantCalls || r.ended != 1 {
				t.Errorf("%d letters: %d lines, %d calls, %d ends", size, len(r.lines), calls, r.ended)
			}
		})
	}
}

// A long line is not passed to a relay that refuses one of the lines before it.
func TestLongLineAfterARefusedOne(t *testing.T) {
	for _, size := range []int{maxGathered, firstRoom} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			r, o := &recorder{take: func(string) error { calls++; return errors.New("the client is gone") }}, New(0)
			o.Push(r)
			synctest.Wait()
			o.Write([]byte(message("a", 10)+"\n"), nil)
			f := &Frame{Out: o}
			f.Put([]byte(message("b", size)))
			f.End()
			f.Deliver()
			o.End()
			synctest.Wait()
			if calls != 1 || len(r.lines) != 0 || r.ended != 1 {
				t.Errorf("%d letters: %d calls, %d lines, %d ends", size, calls, len(r.lines), r.ended)
			}
		})
	}
}

// Long data that is not a message is not passed, and Beginning returns its first bytes.
func TestLongLineWithoutMessage(t *testing.T) {
	r, o := &recorder{}, New(firstRoom)
	o.Push(r)
	f := &Frame{Out: o}
	page := "<html>" + strings.Repeat("x", 4*firstRoom)
	f.Put([]byte(page[:100]))
	f.Put([]byte(page[100:]))
	if m := f.End(); m != nil || !strings.HasPrefix(page, f.Beginning()) || f.Beginning() == "" {
		t.Errorf("%v, begins %q", m, f.Beginning())
	}
	f.Reset()
	if o.kept.Load() != 0 || len(r.lines) != 0 {
		t.Error("bytes are buffered or were passed")
	}
}

// A line break within a message becomes a space, because a message for the relay is one line.
func TestLineBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := &recorder{}, New(0)
		o.Push(r)
		f := &Frame{Out: o}
		f.Add([]byte("\r\n{\"jsonrpc\":\n"))
		f.Add([]byte("\"2.0\",\r\n \"method\":\"a\"}\n"))
		f.End()
		f.Deliver()
		o.Flush()
		synctest.Wait()
		if got, want := strings.Join(r.lines, ""), "{\"jsonrpc\": \"2.0\",   \"method\":\"a\"}\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// ReadBody returns the same message as Add with its parts, wherever the line breaks are.
func TestReadBody(t *testing.T) {
	const limit = 2 * firstRoom
	text := "\r\n\n{\"jsonrpc\":\n\"2.0\",\r\n \"method\":\"a\",\"params\":\"" + strings.Repeat("x", 200) + "\"\n\r\n}\r\n"
	for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader, func(r io.Reader) io.Reader { return r }} {
		for from := range len(text) - 200 { // each line break is once at the start
			o := New(limit)
			o.Push(refusingRelay{})
			want, got := &Frame{Out: o}, &Frame{Out: o}
			want.Add([]byte(text[from:]))
			body := read(strings.NewReader(text[from:]))
			if kept, err := got.ReadBody(body, int64(len(text)-from)); !kept || err != nil {
				t.Fatalf("kept %t, error %v", kept, err)
			}
			if got.Size() != want.Size() || got.breaks != want.breaks || !bytes.Equal(got.room.Bytes, want.room.Bytes) {
				t.Fatalf("got %.100q, want %.100q", got.room.Bytes, want.room.Bytes)
			}
			got.Reset()
			want.Reset()
			if o.kept.Load() != 0 {
				t.Fatal("bytes are buffered")
			}
		}
	}
}

// A body that is too long or incomplete is not a message.
func TestReadBodyFails(t *testing.T) {
	o := New(2 * firstRoom)
	f := &Frame{Out: o}
	for _, size := range []int64{2 * firstRoom, 3 * firstRoom, 1 << 62} {
		if kept, err := f.ReadBody(strings.NewReader("{}"), size); kept || err != nil || f.Size() != 0 || o.kept.Load() != 0 {
			t.Errorf("%d bytes: kept %t, error %v, size %d", size, kept, err, f.Size())
		}
	}
	if kept, err := f.ReadBody(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("{}"))), 2); !kept || err != iotest.ErrTimeout {
		t.Errorf("kept %t, error %v", kept, err)
	}
}

// A refusingRelay accepts no lines.
type refusingRelay struct{}

func (refusingRelay) Line(*wire.Message, bool) error { return io.ErrClosedPipe }
func (refusingRelay) Lines([]byte, io.Reader) error  { return io.ErrClosedPipe }
func (refusingRelay) End()                           {}

// The buffer of a long message may be released as soon as the relay has it. The race detector
// reports any later use.
func TestRoomOfLongMessage(t *testing.T) {
	for range 100 {
		o := New(firstRoom)
		o.Push(refusingRelay{})
		f := &Frame{Out: o}
		f.Put([]byte(`{"a":"`))
		f.Put(make([]byte, 2*firstRoom))
		f.Put(make([]byte, 2*firstRoom))
		f.Reset()
		o.End()
	}
}

// Messages are scanned before they are passed, with the same result as a scan by the relay.
func TestMessagesAreScanned(t *testing.T) {
	texts := []string{
		message("a", 10), message("a", smallMessage), message("a", maxGathered),
		`{"jsonrpc":"2.0","id":1,"result":{"a":[1,2]}}`, `{"result":{},"jsonrpc":"2.0","id":"1"}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`,
		`{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`,
		`{"jsonrpc":"2.0","id":1.5,"result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{"a":1,"a":2}}`,
		`{"jsonrpc":"2.0","\u0069d":1,"result":{}}`, "{\"jsonrpc\":\"2.0\",\r\"id\":1,\"result\":{}}", "\xef\xbb\xbf{}",
		`{"jsonrpc":"2.0","method":"a","Method":"b"}`, `{"jsonrpc":"2.0","method":"a","params":{"a":}}`,
		`[{"jsonrpc":"2.0","id":1,"result":{}}]`, `{"jsonrpc":"2.0"}`, `{}`, `noise`, `[noise]`, ` {"jsonrpc":"2.0","id":1,"result":{}} `,
	}
	synctest.Test(t, func(t *testing.T) {
		r, o := &recorder{}, New(0)
		o.Push(r)
		var want []string
		f := &Frame{Out: o}
		for _, text := range texts {
			f.Put([]byte(text))
			var m wire.Message
			m.Reset(wire.Server, []byte(text))
			is := m.LookEnvelope()
			if got := f.End(); (got != nil) != is {
				t.Errorf("%.100q is a message: %t, want %t", text, got != nil, is)
			}
			if is {
				want = append(want, text+"\n")
				f.Deliver()
			} else {
				f.Reset()
			}
		}
		f.Flush()
		synctest.Wait()
		if f.room != nil {
			t.Error("a frame without a message keeps memory")
		}
		if !slices.Equal(r.lines, want) {
			t.Errorf("passed %.1000q", r.lines)
		}
	})
}

// The copy of a waiting line is reused, so it is not Fixed, even if the line is.
func TestWaitingLinesAreNotFixed(t *testing.T) {
	var m wire.Message
	m.Reset(wire.Server, []byte(message("a", 10)+"\n"))
	m.Fixed = true
	var b batch
	if b.add(&m); b.messages[0].Fixed {
		t.Error("the copy may be kept")
	}
}
