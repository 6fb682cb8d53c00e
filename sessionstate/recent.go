package sessionstate

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// longestKey is the length in bytes up to which a key is kept as it is. Keys
// come from hosts; without a limit their number times their size would not be
// bounded by anything.
const longestKey = 256

// boundKey returns the form in which key is kept: itself, or its hash.
func boundKey(key string) string {
	if len(key) <= longestKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// recent is a table of values in the order of their last use. It is bounded in
// number, and in bytes if its owner says how many an entry takes; its owner holds a lock
// around every call.
type recent[V any] struct {
	max      int
	maxBytes int // 0 stands for no bound
	bytes    int // of all entries
	byKey map[string]*list.Element
	order list.List // of *entry[V]; the front was used last
}

type entry[V any] struct {
	key   string
	used  time.Time
	bytes int // that weigh was told
	value V
}

func newRecent[V any](limit int) *recent[V] {
	return &recent[V]{max: limit, byKey: make(map[string]*list.Element)}
}

// use returns the entry of key, which counts as its use at now. One that was not
// there is made, for which the one longest unused may have to go.
func (r *recent[V]) use(key string, now time.Time) *entry[V] {
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

// weigh notes how many bytes e takes, for which the entries longest unused may have to
// go. The entry used last stays, whatever it takes.
func (r *recent[V]) weigh(e *entry[V], bytes int) {
	r.bytes += bytes - e.bytes
	e.bytes = bytes
	for r.maxBytes > 0 && r.bytes > r.maxBytes && r.order.Back() != r.order.Front() {
		r.remove(r.order.Back())
	}
}

// sweep removes the entries that were not used for idle or longer at now, but
// for those that busy reports, and says how many. It looks at no others: the
// order of use is the order of the list.
func (r *recent[V]) sweep(now time.Time, idle time.Duration, busy func(*V) bool) int {
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

func (r *recent[V]) remove(at *list.Element) {
	e := at.Value.(*entry[V])
	r.bytes -= e.bytes
	delete(r.byKey, e.key)
	r.order.Remove(at)
}
