package callid

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxUnread is how many ids an [Unread] keeps.
const maxUnread = 1 << 16

// An Unread is a set of ids under which replies may still come. The relay keeps in it the ids of
// cancelled calls whose replies rules have to read. It forgets none of them: otherwise a client that
// uses such an id again, which no revision allows before the reply, could get a list that no rule has
// filtered. It keeps digests, so it may take an id for another; and if there are more ids than
// maxUnread, every id is in the set. Both mistakes are on the safe side. A front keeps in one the
// unanswered requests of its server, to let replies to them pass. The zero value is empty.
type Unread struct {
	some atomic.Bool // the set is not empty

	mu   sync.Mutex
	seed maphash.Seed
	ids  map[uint64]int // the number of replies that may come, by digest
	full bool           // there were too many ids, so some are not in ids
}

// Add adds an id under which a reply may come.
func (u *Unread) Add(id []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.seed, u.ids = maphash.MakeSeed(), map[uint64]int{}
	}
	u.some.Store(true)
	sum := u.sum(id)
	if _, there := u.ids[sum]; !there && len(u.ids) >= maxUnread {
		u.full = true
		return
	}
	u.ids[sum]++
}

// Any reports whether the set has an id.
func (u *Unread) Any() bool { return u.some.Load() }

// Has reports whether the set has the id.
func (u *Unread) Has(id []byte) bool {
	if !u.Any() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.full || u.ids[u.sum(id)] > 0
}

// Take is Has for a reply that has come: it removes the id once.
func (u *Unread) Take(id []byte) bool {
	if !u.Any() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := u.sum(id)
	switch n := u.ids[sum]; {
	case n > 1:
		u.ids[sum]--
	case n == 1:
		delete(u.ids, sum)
		u.some.Store(u.full || len(u.ids) > 0)
	default:
		return u.full
	}
	return true
}

// sum returns the digest of an id. It is the same for strings that differ in escapes only, and for
// numbers that are equal in floating point. The caller holds u.mu.
func (u *Unread) sum(id []byte) uint64 {
	if id[0] == '"' {
		return maphash.String(u.seed, (wire.Value{Raw: id}).Text())
	}
	if n, ok := Number(id); ok {
		return maphash.Comparable(u.seed, n)
	}
	return maphash.Bytes(u.seed, id)
}

// Number returns the value of a numeric id for a server that keeps numbers in floating point. It must
// not be written into a message.
func Number(id []byte) (n float64, ok bool) {
	if id[0] == '"' {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(id), 64)
	return n + 0, err == nil // + 0 makes -0 equal to 0
}

// LooseNumber is Number for a reader that also converts strings to numbers.
func LooseNumber(id []byte) (n float64, ok bool) {
	text := string(id)
	if len(id) > 0 && id[0] == '"' {
		text = strings.TrimSpace((wire.Value{Raw: id}).Text())
	}
	n, err := strconv.ParseFloat(text, 64)
	return n + 0, err == nil
}

// IsOdd reports whether an id is an integer that may change when a server keeps it in floating point.
func IsOdd(id []byte) bool {
	const safeDigits = 15 // floating point keeps all integers of so many digits
	return id[0] != '"' && (len(id) > safeDigits || bytes.HasPrefix(id, []byte("-0")))
}
