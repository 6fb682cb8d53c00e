package sessionstate

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// maxKeyBytes is the length of the longest key that is stored as it is. Hosts choose the keys,
// so their size needs a bound.
const maxKeyBytes = 256

// boundKey returns key, or its hash if it is longer than maxKeyBytes.
func boundKey(key string) string {
	if len(key) <= maxKeyBytes {
		return key
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key)))
}

// lru is a table of values in the order of their last use, bounded in number and, if its owner
// calls weigh, in bytes. The owner holds a lock during every call.
type lru[V any] struct {
	max      int
	maxBytes int // 0 for no bound
	bytes    int // sum over all entries
	byKey    map[string]*list.Element
	order    list.List // of *entry[V], last used first
}

type entry[V any] struct {
	key   string
	used  time.Time
	bytes int // set by weigh
	value V
}

func newLRU[V any](limit int) *lru[V] {
	return &lru[V]{max: limit, byKey: make(map[string]*list.Element)}
}

// use returns the entry of key and marks it as used at now. If there is none, it makes one, and
// removes the least recently used entry if the table is full.
func (r *lru[V]) use(key string, now time.Time) *entry[V] {
	if at := r.order.Front(); at != nil {
		if e := at.Value.(*entry[V]); e.key == key { // the usual case
			e.used = now
			return e
		}
	}
	key = boundKey(key)
	if at, ok := r.byKey[key]; ok {
		r.order.MoveToFront(at)
		e := at.Value.(*entry[V])
		e.used = now
		return e
	}
	for len(r.byKey) >= r.max {
		r.remove(r.order.Back())
	}
	// The key may be a slice of a frame and would keep the whole frame in memory.
	e := &entry[V]{key: strings.Clone(key), used: now}
	r.byKey[e.key] = r.order.PushFront(e)
	return e
}

// weigh sets the size of e. While all entries together are too large, it removes the least
// recently used ones, but never the last used entry.
func (r *lru[V]) weigh(e *entry[V], bytes int) {
	r.bytes += bytes - e.bytes
	e.bytes = bytes
	for r.maxBytes > 0 && r.bytes > r.maxBytes && r.order.Back() != r.order.Front() {
		r.remove(r.order.Back())
	}
}

// sweep removes the entries that have been unused for at least idle at now, except those for
// which busy returns true, and returns how many it removed.
func (r *lru[V]) sweep(now time.Time, idle time.Duration, busy func(*V) bool) int {
	removed := 0
	for at := r.order.Back(); at != nil; {
		e := at.Value.(*entry[V])
		if now.Sub(e.used) < idle {
			break // all others were used later
		}
		newer := at.Prev()
		if busy == nil || !busy(&e.value) {
			r.remove(at)
			removed++
		}
		at = newer
	}
	return removed
}

func (r *lru[V]) remove(at *list.Element) {
	e := at.Value.(*entry[V])
	r.bytes -= e.bytes
	delete(r.byKey, e.key)
	r.order.Remove(at)
}
