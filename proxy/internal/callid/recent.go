package callid

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// A Recent remembers the last 64 ids of some kind, for messages that cross with an answer: it need not
// remember for long, and must not grow with what a peer sends. The zero value is empty.
type Recent struct {
	mu  sync.Mutex
	ids []string // oldest first
}

const mostRecent = 64

// MaxKept is the length in bytes of the longest text that Kept returns unchanged.
const MaxKept = 256

// Kept returns a text that a peer chose, in the form in which it may be kept for long: if it is longer
// than 256 bytes, its digest, which cannot be mistaken for an id or a quoted text.
func Kept(text string) string {
	if len(text) <= MaxKept {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + string(sum[:])
}

// recentID returns an id in the form in which it is kept.
func recentID(raw []byte) string {
	k, long := Of(raw)
	if long == "" {
		return string(k.b[:k.n])
	}
	return Kept(long)
}

// Add adds an id, in place of the oldest if there are 64.
func (r *Recent) Add(raw []byte) {
	id := recentID(raw)
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
	at := slices.Index(r.ids, recentID(raw))
	if at >= 0 {
		r.ids = slices.Delete(r.ids, at, at+1)
	}
	return at >= 0
}
