package front

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/piece"
)

// Parts of a message that are short take as much memory as long ones, and no more of them wait
// than there is room for.
func TestShortParts(t *testing.T) {
	s := newStream(true)
	n := 0
	for ; n <= streamRoom; n++ {
		data, _ := piece.Cut([]byte("x"))
		if !s.offer(item{data: data, part: middle}) {
			break
		}
	}
	if n*piece.Size > streamRoom {
		t.Errorf("%d parts wait, which take %d bytes", n, n*piece.Size)
	}
}

// Messages that are gathered as events leave in their order, also between others that are not.
func TestEventsKeepTheirOrder(t *testing.T) {
	s := newStream(true)
	var want strings.Builder
	want.WriteString(":\n\n")
	push := func(frame string) {
		b := []byte(frame)
		if !s.pushEvent(b) {
			t.Fatalf("%.20q was not taken", frame)
		}
		clear(b) // which are the caller's again
		want.WriteString("event: message\ndata: " + strings.ReplaceAll(frame, "\r", "\ndata: ") + "\n\n")
	}
	for _, times := range []int{1, 300, 3000} {
		for range times {
			push(`{"method":"notifications/progress"}`)
		}
		push("{\r\"method\":\"ping\"}")
		push(`"` + strings.Repeat("x", textRoom/2) + `"`)
		push(`"` + strings.Repeat("y", textRoom/3) + `"`)
	}
	s.push(item{data: []byte("{}"), final: true}, true)
	want.WriteString("event: message\ndata: {}\n\n")

	got := httptest.NewRecorder()
	w := &writer{x: &exchange{w: got, rc: *http.NewResponseController(got), accept: accept.Accept{JSON: true, Events: true}}}
	if _, closed, err := w.writeNext(s, nil); err != nil || !closed {
		t.Fatal(closed, err)
	}
	if got.Body.String() != want.String() {
		t.Errorf("got %d bytes, want %d: %.200q", got.Body.Len(), want.Len(), got.Body.String())
	}
}

// Events that wait for a client that does not read take no more memory than there is room for,
// whatever the order in which long ones and short ones come.
func TestEventsThatWait(t *testing.T) {
	event := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	for name, frames := range map[string][]string{
		"short":                    {event(30)},
		"a bare CR after lent":     {event(4100), "{\r}"},
		"long ones after lent":     {event(4100), event(textRoom / 2)},
		"long ones after short":    {event(30), event(textRoom / 2)},
		"as long as text may have": {event(textRoom/2 - 40)},
		"many bare CRs":            {event(30), strings.Repeat("\r", 6000)},
		"a first one of 5 MiB":     {event(5 << 20), event(30)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(true)
				go func() {
					for s.pushEvent([]byte(frames[0])) {
						frames = append(frames[1:], frames[0])
					}
				}()
				synctest.Wait()
				if held, most := heldBy(s), max(streamRoom, cap(s.items[0].data)); held > most || held < most-2*textRoom {
					t.Errorf("%d items take %d bytes, want about %d, and no more", len(s.items), held, most)
				}
				s.abandon()
			})
		})
	}
}

// heldBy returns how much memory waits in a stream.
func heldBy(t *stream) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := cap(t.text)
	for _, i := range t.items {
		n += cap(i.data)
	}
	return n
}

// What a stream holds when its reader leaves is given back.
func TestLeaveGivesBack(t *testing.T) {
	s := newStream(true)
	released := 0
	l := &loan{over: func() { released++ }}
	l.Hold()
	s.push(item{data: []byte("{}"), lease: l}, false)
	s.abandon()
	s.abandon()
	if released != 1 {
		t.Errorf("the memory of a message was given back %d times, want once", released)
	}
}

// The buffer of a writer stays small also where a message has many bare carriage returns, each of
// which takes more bytes as an event.
func TestWriterBuffer(t *testing.T) {
	got := httptest.NewRecorder()
	w := &writer{x: &exchange{w: got, rc: *http.NewResponseController(got)}, mode: asEvents}
	for range 2 {
		if err := w.item(item{data: []byte(strings.Repeat("\r", 1<<20))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.writeEvents(); err != nil {
		t.Fatal(err)
	}
	if cap(w.events) > 2*maxEvents {
		t.Errorf("the buffer has %d bytes, want %d at most", cap(w.events), 2*maxEvents)
	}
	if want := strings.Repeat("event: message"+strings.Repeat("\ndata: ", 1<<20+1)+"\n\n", 2); got.Body.String() != want {
		t.Errorf("got %d bytes, want %d", got.Body.Len(), len(want))
	}
}
