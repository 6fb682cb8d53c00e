package answer

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
)

func newStream() *outbox.Stream {
	t := &outbox.Stream{}
	t.Init(true)
	return t
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Batched events keep their order, also relative to messages that are not batched.
func TestEventsKeepTheirOrder(t *testing.T) {
	s := newStream()
	var want strings.Builder
	want.WriteString(":\n\n")
	push := func(frame string) {
		b := []byte(frame)
		if !s.PushEvent(b) {
			t.Fatalf("%.20q was not accepted", frame)
		}
		clear(b) // the caller may reuse b
		want.WriteString("event: message\ndata: " + strings.ReplaceAll(frame, "\r", "\ndata: ") + "\n\n")
	}
	const textRoom = 64 << 10 // as in package outbox
	for _, times := range []int{1, 300, 3000} {
		for range times {
			push(`{"method":"notifications/progress"}`)
		}
		push("{\r\"method\":\"ping\"}")
		push(`"` + strings.Repeat("x", textRoom/2) + `"`)
		push(`"` + strings.Repeat("y", textRoom/3) + `"`)
	}
	s.Push(outbox.Item{Data: []byte("{}"), Final: true}, true)
	want.WriteString("event: message\ndata: {}\n\n")

	got := httptest.NewRecorder()
	w := &Writer{Response: got, Control: *http.NewResponseController(got), Accept: accept.Accept{JSON: true, Events: true}, Stream: s}
	if _, closed, err := w.writeNext(nil); err != nil || !closed {
		t.Fatal(closed, err)
	}
	if got.Body.String() != want.String() {
		t.Errorf("got %d bytes, want %d: %.200q", got.Body.Len(), want.Len(), got.Body.String())
	}
}

// The buffer of a writer stays small even if a message has many bare carriage returns, each of which
// is longer in an event.
func TestWriterBuffer(t *testing.T) {
	got := httptest.NewRecorder()
	w := &Writer{Response: got, Control: *http.NewResponseController(got), Mode: Events}
	for range 2 {
		check(t, w.item(outbox.Item{Data: []byte(strings.Repeat("\r", 1<<20))}))
	}
	check(t, w.writeEvents())
	if cap(w.events) > 2*maxEvents {
		t.Errorf("the buffer has %d bytes, want %d at most", cap(w.events), 2*maxEvents)
	}
	if want := strings.Repeat("event: message"+strings.Repeat("\ndata: ", 1<<20+1)+"\n\n", 2); got.Body.String() != want {
		t.Errorf("got %d bytes, want %d", got.Body.Len(), len(want))
	}
}

// A slowClient reads rate bytes in a second.
type slowClient struct {
	http.ResponseWriter
	rate     int
	deadline time.Time
}

func (c *slowClient) Flush() {}

func (c *slowClient) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *slowClient) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(c.rate))
	if time.Now().After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.ResponseWriter.Write(b)
}

// A long reply may take longer than WriteTime, if the client reads all the time.
func TestSlowClient(t *testing.T) {
	for name, mode := range map[string]Mode{"JSON": JSON, "events": Events} {
		for rate, want := range map[int]error{8 << 10: nil, 1 << 10: os.ErrDeadlineExceeded} {
			synctest.Test(t, func(t *testing.T) {
				got := &slowClient{ResponseWriter: httptest.NewRecorder(), rate: rate}
				w := &Writer{Response: got, Control: *http.NewResponseController(got), Mode: mode}
				began := time.Now()
				err := w.items([]outbox.Item{{Data: make([]byte, 4<<20), Final: true}})
				if took := time.Since(began); !errors.Is(err, want) || want == nil && took < 10*WriteTime || want != nil && took > 5*WriteTime {
					t.Errorf("%s at %d bytes a second: after %v %v, want %v", name, rate, took, err, want)
				}
			})
		}
	}
}

// A deafClient does not read: a write fails at its deadline.
type deafClient struct {
	http.ResponseWriter
	deadline time.Time
}

func (c *deafClient) Flush() {}

func (c *deafClient) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *deafClient) Write([]byte) (int, error) {
	time.Sleep(time.Until(c.deadline))
	return 0, os.ErrDeadlineExceeded
}

// A client that comes back does not wait for a write that its old response begins at that moment.
func TestInterruptBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder outbox.Recorder
		s := newStream()
		client := &deafClient{ResponseWriter: httptest.NewRecorder()}
		w := &Writer{Response: client, Control: *http.NewResponseController(client), Accept: accept.Accept{Events: true}, Mode: Events, Stream: s}
		w.Reader = recorder.Record(s, []byte("1"), w.Interrupt)
		id := string(strings.Split(string(w.Reader.Begin()), "\n")[1])[len("id: "):]
		go recorder.TakeUp(id, func() {})
		synctest.Wait() // it has interrupted
		began := time.Now()
		if err := w.comment(); err == nil {
			t.Error("the write did not fail")
		}
		w.leave()
		if took := time.Since(began); took > 0 {
			t.Errorf("the new response waited for %v", took)
		}
	})
}

// A lostClient has lost its connection, but what was written last is still read, as by net/http over HTTP/2.
type lostClient struct {
	http.ResponseWriter
	reads, read []byte
}

func (c *lostClient) Write(b []byte) (int, error) {
	if c.reads == nil {
		c.reads, c.read = b, bytes.Clone(b)
	}
	return 0, errors.New("the stream was reset")
}

// What a client did not get is recorded, but not in memory that net/http still reads.
func TestWriteAfterFailure(t *testing.T) {
	var recorder outbox.Recorder
	s := newStream()
	client := &lostClient{ResponseWriter: httptest.NewRecorder()}
	w := &Writer{Response: client, Control: *http.NewResponseController(client), Mode: Events, Stream: s}
	w.Reader = recorder.Record(s, []byte("1"), func() {})
	s.Push(outbox.Item{Data: []byte(`{"id":2,"method":"ping"}`)}, false)
	s.PushEvent([]byte(`{"method":"notifications/progress"}`))
	s.Push(outbox.Item{Data: []byte(`{"id":1,"result":{}}`), Final: true}, true)
	if _, _, err := w.writeNext(nil); err == nil {
		t.Error("no error")
	}
	if !bytes.Equal(client.reads, client.read) {
		t.Errorf("%q became %q", client.read, client.reads)
	}
}

// If a connection breaks between two events, the client gets only the events again that it has not received.
func TestEachEventHasAnID(t *testing.T) {
	progress, ping := outbox.Item{Text: true, Data: []byte(`{"method":"notifications/progress"}`)}, outbox.Item{Data: []byte(`{"id":2,"method":"ping"}`)}
	first, last := outbox.Item{Data: []byte(`{"method":"x",`), Part: outbox.Middle}, outbox.Item{Data: []byte(`"params":{}}`), Part: outbox.Last}
	for name, writes := range map[string][][]outbox.Item{
		"written together":                 {{progress, progress, ping, progress}},
		"a long message in several writes": {{progress, first}, {last, progress}},
	} {
		var recorder outbox.Recorder
		s := newStream()
		got := httptest.NewRecorder()
		w := &Writer{Response: got, Control: *http.NewResponseController(got), Mode: Events, Stream: s}
		w.Reader = recorder.Record(s, []byte("1"), func() {})
		for _, items := range writes {
			for _, i := range items {
				if i.Text {
					s.PushEvent(i.Data)
				} else {
					s.Push(i, false)
				}
			}
			_, _, err := w.writeNext(nil)
			check(t, err)
		}
		events := strings.SplitAfter(strings.TrimSuffix(got.Body.String(), "\n\n"), "\n\n")
		for n, event := range events {
			_, id, ok := strings.Cut(strings.TrimSpace(event), "\nid: ")
			want := strings.TrimPrefix(got.Body.String(), strings.Join(events[:n], "")+strings.TrimSpace(event)+"\n\n")
			if text, kept := w.Reader.After(id); !ok || !kept || string(text) != want {
				t.Errorf("%s: after %q (%v, %v): %q", name, event, ok, kept, text)
			}
		}
	}
}

// The id of the event with a long reply says that nothing follows, also before the stream is closed: a client that
// names it later must get no second answer.
func TestLongReplyHasTheLastID(t *testing.T) {
	var recorder outbox.Recorder
	s := newStream()
	got := httptest.NewRecorder()
	w := &Writer{Response: got, Control: *http.NewResponseController(got), Mode: Events, Stream: s}
	w.Reader = recorder.Record(s, []byte("1"), func() {})
	i, _ := outbox.Cut([]byte(`{"id":1,"result":`))
	i.Final = true
	s.Push(i, false)
	last, _ := outbox.Cut([]byte(`{}}`))
	last.Final, last.Part = true, outbox.Last
	s.Push(last, false)
	if _, closed, err := w.writeNext(nil); closed || err != nil {
		t.Fatal(closed, err)
	}
	_, id, _ := strings.Cut(strings.TrimSpace(got.Body.String()), "\nid: ")
	if request, ok := outbox.ParseID(id); !ok || len(request) > 0 {
		t.Errorf("the id %q names the request %s", id, request)
	}
}
