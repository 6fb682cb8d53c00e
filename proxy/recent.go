package proxy

import "sync"

// recentIDs remembers the last request ids of some kind.
type recentIDs struct {
	mu   sync.Mutex
	ids  [64]string
	next int
}

// maxRecentID is how long an id may be that is remembered, in bytes.
const maxRecentID = 256

func (r *recentIDs) add(id []byte) {
	if len(id) > maxRecentID {
		return // it is not worth the memory
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[r.next%len(r.ids)] = string(id)
	r.next++
}

// take reports whether the id is among them, and forgets it: a client may use an
// id again.
func (r *recentIDs) take(id []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ids {
		if r.ids[i] != "" && r.ids[i] == string(id) {
			r.ids[i] = ""
			return true
		}
	}
	return false
}
