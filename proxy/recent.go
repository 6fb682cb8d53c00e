package proxy

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// recentIDs remembers the last request ids of some kind.
type recentIDs struct {
	mu   sync.Mutex
	ids  [64]string
	next int
}

// maxRecentID is how long an id may be that is remembered as it is, in bytes. Of a
// longer one it is the digest.
const maxRecentID = 256

// recentID returns an id in the one spelling in which it is remembered.
func recentID(raw []byte) string {
	k, long := makeKey(raw)
	switch {
	case long == "":
		return string(k.b[:k.n])
	case len(long) > maxRecentID:
		sum := sha256.Sum256([]byte(long))
		return string(sum[:])
	}
	return long
}

func (r *recentIDs) add(raw []byte) {
	id := recentID(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[r.next%len(r.ids)] = id
	r.next++
}

// take reports whether the id is among them, and forgets it: a client may use an
// id again.
func (r *recentIDs) take(raw []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.ids[:], recentID(raw))
	if at >= 0 {
		r.ids[at] = ""
	}
	return at >= 0
}
