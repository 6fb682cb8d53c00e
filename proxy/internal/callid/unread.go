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

// maxUnread is how many ids an [Unread] tells apart.
const maxUnread = 1 << 16

// An Unread remembers the ids of calls that were cancelled and whose replies, which
// rules have to read, may still come. It forgets none of them: a client that uses such
// an id again, which no revision allows before the answer, could otherwise be shown a
// list that no rule has filtered. Of an id it keeps a digest, so an id may be taken for
// another, which is the safe side; and if there are too many, every id is among them. A front
// remembers in one which requests of its server are not answered: there it lets a reply pass.
// The zero value is empty.
type Unread struct {
	some atomic.Bool // there is one

	mu   sync.Mutex
	seed maphash.Seed
	ids  map[uint64]int // how many replies may come under it
	full bool           // for good: what was not kept cannot be taken out
}

// Add notes that a reply under the id may come.
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

// Any reports whether such a reply may come under some id.
func (u *Unread) Any() bool { return u.some.Load() }

// Has reports whether such a reply may come under the id.
func (u *Unread) Has(id []byte) bool {
	if !u.Any() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.full || u.ids[u.sum(id)] > 0
}

// Take is Has, and notes that the reply has come.
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

// sum returns the digest of an id, the same for all spellings: of a text with escapes,
// and of a number that a server keeps in floating point. The caller holds u.mu.
func (u *Unread) sum(id []byte) uint64 {
	if id[0] == '"' {
		return maphash.String(u.seed, (wire.Value{Raw: id}).Text())
	}
	if n, ok := Number(id); ok {
		return maphash.Comparable(u.seed, n)
	}
	return maphash.Bytes(u.seed, id)
}

// Number returns an id as a server has it that keeps numbers in floating point. The
// number is not to be written anywhere.
func Number(id []byte) (n float64, ok bool) {
	if id[0] == '"' {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(id), 64)
	return n + 0, err == nil // 0 for -0 too
}

// LooseNumber returns an id as a reader has it that turns texts into numbers too.
func LooseNumber(id []byte) (n float64, ok bool) {
	text := string(id)
	if len(id) > 0 && id[0] == '"' {
		text = strings.TrimSpace((wire.Value{Raw: id}).Text())
	}
	n, err := strconv.ParseFloat(text, 64)
	return n + 0, err == nil
}

// IsOdd reports whether an id is an integer that floating point may not give back
// as it is written.
func IsOdd(id []byte) bool {
	const safeDigits = 15
	return id[0] != '"' && (len(id) > safeDigits || bytes.HasPrefix(id, []byte("-0")))
}
