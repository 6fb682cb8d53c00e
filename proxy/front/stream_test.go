package front

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	if _, closed, err := w.next(s, nil); err != nil || !closed {
		t.Fatal(closed, err)
	}
	if got.Body.String() != want.String() {
		t.Errorf("got %d bytes, want %d: %.200q", got.Body.Len(), want.Len(), got.Body.String())
	}
}
