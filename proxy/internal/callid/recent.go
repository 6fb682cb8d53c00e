package callid

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// A Recent remembers the last 64 ids of some kind. The zero value is empty.
type Recent struct {
	mu   sync.Mutex
	ids  []string // nil before the first one
	next int
}

const mostRecent = 64

// maxRecentID is the length in bytes of the longest id that is kept. For a longer id, the digest is.
const maxRecentID = 256

// recentID returns an id in the form in which it is kept.
func recentID(raw []byte) string {
	k, long := Of(raw)
	switch {
	case long == "":
		return string(k.b[:k.n])
	case len(long) > maxRecentID:
		sum := sha256.Sum256([]byte(long))
		return string(sum[:])
	}
	return long
}

// Add adds an id, in place of the oldest if there are 64.
func (r *Recent) Add(raw []byte) {
	id := recentID(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = make([]string, mostRecent)
	}
	r.ids[r.next%len(r.ids)] = id
	r.next++
}

// Take removes the id and reports whether it was there. A client may use an id again.
func (r *Recent) Take(raw []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.ids, recentID(raw))
	if at >= 0 {
		r.ids[at] = ""
	}
	return at >= 0
}
