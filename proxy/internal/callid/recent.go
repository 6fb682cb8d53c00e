package callid

import (
	"slices"
	"sync"
)

// A Recent remembers the last 64 ids of some kind, for messages that cross with an answer: it need not
// remember for long, and must not grow with what a peer sends. The zero value is empty.
type Recent struct {
	mu  sync.Mutex
	ids []string // their Text, oldest first
}

const mostRecent = 64

// Add adds an id, in place of the oldest if there are 64.
func (r *Recent) Add(raw []byte) {
	id := Text(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == mostRecent {
		r.ids = slices.Delete(r.ids, 0, 1)
	}
	r.ids = append(r.ids, id)
}

// Take removes the id and reports whether it was there. A client may use an id again.
func (r *Recent) Take(raw []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.ids, Text(raw))
	if at >= 0 {
		r.ids = slices.Delete(r.ids, at, at+1)
	}
	return at >= 0
}
