package access

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/sessionstate"
)

// buckets are the token buckets of one rate, in the order of their last use.
// Limiters.mu guards them.
type buckets struct {
	Rate
	limit rate.Limit
	byKey map[bucketKey]*list.Element
	order list.List             // of *bucket, the most recently used first
	rests map[bucketKey]*bucket // for keys beyond maxBuckets, by owner

	shared bool   // whether tokens come from a Lender
	server string // the name of the server whose tools are limited
	nth    int    // the number of equal rates before this one
}

type bucketKey struct{ tenant, name string }

type bucket struct {
	key bucketKey
	// limiter counts the calls that are not counted by a Lender.
	limiter *rate.Limiter
	loan    *loan // nil without a Lender
}

// maxBuckets bounds the buckets of one rate, because a client may choose their
// keys.
const maxBuckets = 10_000

// roundingError is the part of a token that may be missing, because the limiter
// computes with floating point seconds.
const roundingError = 1e-6

// key returns the key of the bucket that counts a call.
func (b *buckets) key(view *sessionstate.Context, tool string) bucketKey {
	if b.Per == PerTool {
		return bucketKey{name: kept.Text(tool)} // a client may invent long names
	}
	tenant, _ := view.Lookup("principal.tenant")
	switch b.Per {
	case PerSession:
		session, _ := view.Lookup("session.id")
		return bucketKey{tenant.Value, session.Value}
	case PerTenant:
		return bucketKey{tenant: tenant.Value}
	}
	user, _ := view.Lookup("principal.user")
	return bucketKey{tenant.Value, user.Value}
}

// owner returns the user whose client chose the key of a call's bucket, or no user if clients do not choose it.
func (b *buckets) owner(view *sessionstate.Context) bucketKey {
	if b.Per != PerSession {
		return bucketKey{}
	}
	tenant, _ := view.Lookup("principal.tenant")
	user, _ := view.Lookup("principal.user")
	return bucketKey{tenant.Value, user.Value}
}

// bucket returns the bucket of a key. At maxBuckets it replaces the least recently
// used bucket if that is full again, because a full bucket does not differ from a new one.
// If it is not full, all further keys of an owner share one bucket, so that nobody gets tokens by
// inventing keys, and nobody takes those of other users.
func (b *buckets) bucket(key bucketKey, view *sessionstate.Context, now time.Time) *bucket {
	if at, ok := b.byKey[key]; ok {
		b.order.MoveToFront(at)
		return at.Value.(*bucket)
	}
	if len(b.byKey) >= maxBuckets {
		oldest := b.order.Back()
		old := oldest.Value.(*bucket)
		if !old.isFull(now) {
			return b.restOf(b.owner(view))
		}
		delete(b.byKey, old.key)
		b.order.Remove(oldest)
	}
	// The key may be part of a frame, which the copy does not keep in memory.
	key = bucketKey{strings.Clone(key.tenant), strings.Clone(key.name)}
	k := b.newBucket(key, "key")
	b.byKey[key] = b.order.PushFront(k)
	return k
}

// restOf returns the bucket of an owner for the keys beyond maxBuckets. Owners beyond maxBuckets share one.
func (b *buckets) restOf(owner bucketKey) *bucket {
	if b.rests == nil {
		b.rests = map[bucketKey]*bucket{}
	}
	if b.rests[owner] == nil && len(b.rests) >= maxBuckets {
		owner = bucketKey{}
	}
	if b.rests[owner] == nil {
		b.rests[owner] = b.newBucket(owner, "rest")
	}
	return b.rests[owner]
}

func (b *buckets) newBucket(key bucketKey, kind string) *bucket {
	k := &bucket{key: key, limiter: rate.NewLimiter(b.limit, b.Burst)}
	if b.shared {
		k.loan = b.newLoan(key, kind)
	}
	return k
}

// isFull reports whether no token of the bucket is missing.
func (k *bucket) isFull(now time.Time) bool {
	return k.limiter.TokensAt(now) >= float64(k.limiter.Burst()) && (k.loan == nil || k.loan.isRepaid(now))
}

// spend takes a token. The caller knows that the bucket has one.
func (k *bucket) spend(now time.Time) {
	if k.loan != nil && k.loan.hasToken(now) {
		k.loan.tokens--
		return
	}
	k.limiter.ReserveN(now, 1)
}

// limiterWait returns how long it takes until the limiter has a token, 0 if it has one.
func (k *bucket) limiterWait(now time.Time) time.Duration {
	missing := 1 - k.limiter.TokensAt(now)
	if missing <= roundingError {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(k.limiter.Limit()) * float64(time.Second)))
}

const (
	// loanTime is how long borrowed tokens may be spent. A process borrows no more tokens than
	// the bucket gains in this time, and no more than a tenth of the bucket (loanShare), so that
	// idle processes keep few tokens from the others.
	loanTime, loanShare = 10 * time.Second, 10
	// emptyTime is the least time for which the Lender is not asked again for a bucket that was
	// empty.
	emptyTime = 100 * time.Millisecond
)

// A loan holds the tokens that this process has borrowed from a bucket. Limiters.mu guards it.
type loan struct {
	bucket    sessionstate.Bucket
	limit     rate.Limit
	size, max int // tokens of the last request, and the most that may be requested

	tokens    int           // not spent yet
	expires   time.Time     // tokens may not be spent after this time
	emptyTill time.Time     // the bucket has no token before this time
	fullAt    time.Time     // when the bucket is full again
	processes int           // the number of processes that share the bucket
	counted   int64         // see [sessionstate.Demand]
	answered  chan struct{} // closed when the Lender has answered; nil while it is not being asked
}

func (b *buckets) newLoan(key bucketKey, kind string) *loan {
	every := max((b.Window+time.Duration(b.Limit)-1)/time.Duration(b.Limit), 1) // rounded up, to stay below the limit
	name := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d %d %d %q %q", b.server, b.Tools, b.Per, b.Limit, b.Window, b.Burst, b.nth, kind, key.name))
	return &loan{
		bucket:    sessionstate.Bucket{Tenant: key.tenant, Name: hex.EncodeToString(name[:16]), Every: every, Burst: b.Burst},
		limit:     b.limit,
		max:       max(min(int(loanTime/every), b.Burst/loanShare), 1),
		processes: 1,
	}
}

func (n *loan) hasToken(now time.Time) bool { return n.tokens > 0 && now.Before(n.expires) }

// isRepaid reports whether the bucket is full again and the Lender is not being asked for it.
func (n *loan) isRepaid(now time.Time) bool {
	return n.answered == nil && !n.hasToken(now) && !now.Before(n.fullAt)
}

// demand returns the next request to the Lender: for twice as many tokens as the last one if
// those were spent in time, else for one token. So a process with few calls keeps no tokens
// from the others. It also returns tokens that have expired.
func (n *loan) demand(now time.Time) sessionstate.Demand {
	d := sessionstate.Demand{Back: n.tokens, Counted: n.counted}
	if n.size = min(2*n.size, n.max); !now.Before(n.expires) {
		n.size = 1
	}
	n.tokens, d.Want = 0, n.size
	return d
}

// accept makes the tokens of a loan usable. asked is the time of the request.
func (k *bucket) accept(got sessionstate.Loan, asked, now time.Time) {
	n := k.loan
	n.tokens, n.expires, n.fullAt, n.counted = got.Tokens, asked.Add(loanTime), now.Add(got.Full), got.Counted
	if got.Tokens == 0 {
		// A bucket is full Burst-1 tokens after it has the first one.
		next := got.Full - time.Duration(n.bucket.Burst-1)*n.bucket.Every
		n.emptyTill = now.Add(max(next, emptyTime))
	}
	if p := max(got.Processes, 1); p != n.processes {
		n.processes = p
		k.limiter.SetLimitAt(now, n.limit/rate.Limit(p))
		k.limiter.SetBurstAt(now, max(n.bucket.Burst/p, 1))
	}
}
