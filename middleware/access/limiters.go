package access

import (
	"cmp"
	"container/list"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate"
)

// Limiters counts the calls of a process for its rates. The zero value is ready to use.
type Limiters struct {
	// Lender lends tokens from buckets that several processes share; nil if this process has
	// its own buckets. Set it before the Limiters are used.
	Lender sessionstate.Lender

	asking chan struct{} // holds one element for each running call of Lend; nil without a Lender

	mu      sync.Mutex
	rates   []*buckets
	retryAt time.Time // the Lender failed and is not asked before
}

// maxBuckets bounds the buckets of one rate, because a client may choose their
// keys.
const maxBuckets = 10_000

// roundingError is the part of a token that may be missing, because the limiter
// computes with floating point seconds.
const roundingError = 1e-6

// buckets are the token buckets of one rate, in the order of their last use.
// Limiters.mu guards them.
type buckets struct {
	Rate
	limit rate.Limit
	byKey map[bucketKey]*list.Element
	order list.List // of *bucket, the most recently used first
	rest  *bucket   // for keys beyond maxBuckets

	shared bool   // whether tokens come from a Lender
	server string // the name of the server whose tools are limited
	nth    int    // the number of equal rates before this one
}

type bucketKey struct{ tenant, name string }

// A bucket counts the calls of one key.
type bucket struct {
	key bucketKey
	// limiter counts the calls that are not counted by a Lender.
	limiter *rate.Limiter
	loan    *loan // nil without a Lender
}

// buckets returns the buckets of a server's rates, and creates those that are missing. The
// buckets of a removed rate are kept, so that removing a rate for a moment refills nothing.
func (l *Limiters) buckets(rates []Rate, server string) []*buckets {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Lender != nil && l.asking == nil {
		l.asking = make(chan struct{}, maxAsking)
	}
	var out []*buckets
	for _, r := range rates {
		r.Burst = cmp.Or(r.Burst, r.Limit)
		same := func(b *buckets) bool { return b.equal(&r) && b.server == server }
		i := slices.IndexFunc(l.rates, func(b *buckets) bool { return same(b) && !slices.Contains(out, b) })
		if i < 0 {
			i = len(l.rates)
			b := &buckets{Rate: r, byKey: map[bucketKey]*list.Element{}, shared: l.Lender != nil, server: server}
			b.limit = rate.Limit(float64(r.Limit) / r.Window.Seconds())
			for _, o := range out {
				if same(o) {
					b.nth++
				}
			}
			l.rates = append(l.rates, b)
		}
		out = append(out, l.rates[i])
	}
	return out
}

// An attempt holds the circumstances of one call of take.
type attempt struct {
	now  time.Time
	down Down
	late bool // the call has waited for the Lender long enough
}

// take takes a token from every bucket that counts the call. If one of them is empty, it
// takes none and turns d into a refusal. If the Lender has to be asked first, it takes none
// either, and returns a channel that is closed when the Lender has answered.
func (l *Limiters) take(rates []*buckets, d *decision, view *sessionstate.Context, tool string, a attempt) (answered <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var array [4]*bucket // keeps most calls from allocating
	due, allKnown := array[:0], true
	for i, b := range rates {
		matches, err := glob.Match(b.Tools, tool)
		if err != nil {
			*d = undecided(byDefaultRule, err)
			return nil
		}
		if !matches {
			continue
		}
		k := b.bucket(b.key(view, tool), a.now)
		due = append(due, k)
		wait, state := l.wait(k, a)
		allKnown = allKnown && state != unknown
		if state == unavailable && a.down == DownClosed {
			*d = decision{reason: rateUnknown, rate: i, text: textRateUnknown}
			return nil
		}
		if wait > 0 && (d.allowed || wait > d.retryAfter) {
			*d = decision{reason: rateReached, by: d.by, rate: i, retryAfter: wait}
		}
	}
	switch {
	case !d.allowed:
		d.text = "Rate limit reached: try again in " + seconds(d.retryAfter)
	case !allKnown:
		return l.ask(due, a)
	default:
		for _, k := range due {
			k.spend(a.now)
		}
	}
	return nil
}

// limiterWait returns how long it takes until the limiter has a token, 0 if it has one.
func (k *bucket) limiterWait(now time.Time) time.Duration {
	missing := 1 - k.limiter.TokensAt(now)
	if missing <= roundingError {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(k.limiter.Limit()) * float64(time.Second)))
}

func seconds(d time.Duration) string {
	n := int64((d + time.Second - 1) / time.Second)
	if n <= 1 {
		return "1 second"
	}
	return strconv.FormatInt(n, 10) + " seconds"
}

// key returns the key of the bucket that counts a call.
func (b *buckets) key(view *sessionstate.Context, tool string) bucketKey {
	if b.Per == PerTool {
		return bucketKey{name: tool}
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

// bucket returns the bucket of a key. At maxBuckets it replaces the least recently
// used bucket if that is full again, because a full bucket does not differ from a new one.
// If it is not full, all further keys share one bucket, so that nobody gets tokens by
// inventing keys.
func (b *buckets) bucket(key bucketKey, now time.Time) *bucket {
	if at, ok := b.byKey[key]; ok {
		b.order.MoveToFront(at)
		return at.Value.(*bucket)
	}
	if len(b.byKey) >= maxBuckets {
		oldest := b.order.Back()
		old := oldest.Value.(*bucket)
		if !old.isFull(now) {
			if b.rest == nil {
				b.rest = b.newBucket(bucketKey{}, "rest")
			}
			return b.rest
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
