package proxy

import "sync"

// unseen remembers the last calls that attache answered without the upstream:
// their cancellation must not be forwarded (specification, basic/patterns/
// cancellation: it names a request that was sent).
type unseen struct {
	mu   sync.Mutex
	ids  [64]string
	next int
}

// maxUnseenID is how long an id may be that is remembered, in bytes.
const maxUnseenID = 256

func (u *unseen) add(id []byte) {
	if len(id) > maxUnseenID {
		return // it is not worth the memory: at worst the upstream ignores a notification
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids[u.next%len(u.ids)] = string(id)
	u.next++
}

// take reports whether the id is among them, and forgets it: a client may use an
// id again.
func (u *unseen) take(id []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.ids {
		if u.ids[i] != "" && u.ids[i] == string(id) {
			u.ids[i] = ""
			return true
		}
	}
	return false
}
