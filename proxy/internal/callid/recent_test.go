package callid

import (
	"strconv"
	"testing"

	"github.com/attache-mcp/attache/internal/kept"
)

// A Recent remembers the last ids, each until it is taken.
func TestRecent(t *testing.T) {
	var r Recent
	if r.Take([]byte("0")) {
		t.Error("an empty Recent has an id")
	}
	for i := range mostRecent + 1 {
		r.Add([]byte(strconv.Itoa(i)))
	}
	for i := range mostRecent + 1 {
		id := []byte(strconv.Itoa(i))
		if got := r.Take(id); got != (i > 0) {
			t.Errorf("%d is remembered: %v", i, got)
		}
		if r.Take(id) {
			t.Errorf("%d is remembered after it was taken", i)
		}
	}
	for _, id := range []string{idOfLength(kept.Max), idOfLength(kept.Max + 1)} {
		r.Add([]byte(id))
		if r.Take([]byte(id+" ")) || !r.Take([]byte(id)) {
			t.Errorf("an id of %d bytes is not remembered as it is", len(id))
		}
	}
}
