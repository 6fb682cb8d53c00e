package sessionstate

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// longestKey is the length in bytes up to which a key is kept as it is. Hosts choose the
// keys; without a limit nothing would bound their size.
const longestKey = 256

// boundKey returns the form in which key is kept: itself, or its hash.
func boundKey(key string) string {
	if len(key) <= longestKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// lru is a table of values in the order of their last use. It is bounded in number, and in
// bytes if its owner says how many an entry takes. Its owner holds a lock around every call.
type lru[V any] struct {
	max      int
	maxBytes int // 0 stands for no bound
	bytes    int // of all entries
	byKey    map[string]*list.Element
	order    list.List // of *entry[V]; the front was used last
}

type entry[V any] struct {
	key   string
	used  time.Time
	bytes int // as weigh was called with
	value V
}

func newLRU[V any](limit int) *lru[V] {
	return &lru[V]{max: limit, byKey: make(map[string]*list.Element)}
}

// use returns the entry of key, and notes its use at now. It makes an entry that does not
// exist; the one longest unused may be removed for it.
func (r *lru[V]) use(key string, now time.Time) *entry[V] {
	if at := r.order.Front(); at != nil {
		if e := at.Value.(*entry[V]); e.key == key { // as it mostly is
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
	// The key may be a slice of a frame, which must not be kept in memory whole.
	e := &entry[V]{key: strings.Clone(key), used: now}
	r.byKey[e.key] = r.order.PushFront(e)
	return e
}

// weigh notes how many bytes e takes. The entries longest unused are removed while all take
// too much; the entry used last stays, whatever its size.
func (r *lru[V]) weigh(e *entry[V], bytes int) {
	r.bytes += bytes - e.bytes
	e.bytes = bytes
	for r.maxBytes > 0 && r.bytes > r.maxBytes && r.order.Back() != r.order.Front() {
		r.remove(r.order.Back())
	}
}

// sweep removes the entries that were not used for idle or longer at now, except those
// that busy reports, and returns how many. It stops at the first entry that was used later:
// the list is in the order of use.
func (r *lru[V]) sweep(now time.Time, idle time.Duration, busy func(*V) bool) int {
	removed := 0
	for at := r.order.Back(); at != nil; {
		e := at.Value.(*entry[V])
		if now.Sub(e.used) < idle {
			break
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
