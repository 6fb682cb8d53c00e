package access

import (
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

// Limiters counts the calls of a process for its rates. The zero value is ready.
type Limiters struct {
	mu    sync.Mutex
	rates []*buckets
}

// maxBuckets bounds the buckets of one rate, because a client may choose their
// keys.
const maxBuckets = 10_000

// roundingError is how much of a token may be missing: the limiter computes with
// floating point seconds.
const roundingError = 1e-6

// buckets are the token buckets of one rate, in the order of their last use.
// Limiters.mu guards them.
type buckets struct {
	Rate
	limit rate.Limit
	byKey map[bucketKey]*list.Element
	order list.List     // of *bucket; the front was used last
	rest  *rate.Limiter // for keys beyond maxBuckets
}

type bucketKey struct{ tenant, name string }

type bucket struct {
	key     bucketKey
	limiter *rate.Limiter
}

// buckets returns the buckets of the rates, and makes those that are missing. The
// buckets of a removed rate stay, so that removing a rate for a moment refills
// nothing.
func (l *Limiters) buckets(rates []Rate) []*buckets {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*buckets
	for _, r := range rates {
		if r.Burst == 0 {
			r.Burst = r.Limit
		}
		i := slices.IndexFunc(l.rates, func(b *buckets) bool { return b.equal(&r) && !slices.Contains(out, b) })
		if i < 0 {
			i = len(l.rates)
			limit := rate.Limit(float64(r.Limit) / r.Window.Seconds())
			l.rates = append(l.rates, &buckets{Rate: r, limit: limit, byKey: map[bucketKey]*list.Element{}})
		}
		out = append(out, l.rates[i])
	}
	return out
}

// take takes a token from every bucket that counts the call. If one of them is
// empty it takes none and turns d into a refusal.
func (l *Limiters) take(rates []*buckets, d *decision, view *sessionstate.Context, tool string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var array [4]*rate.Limiter // keeps most calls from allocating
	due := array[:0]
	for i, b := range rates {
		matches, err := glob.Match(b.Tools, tool)
		if err != nil {
			*d = undecided(byDefaultRule, err)
			return
		}
		if !matches {
			continue
		}
		limiter := b.limiter(b.key(view, tool), now)
		due = append(due, limiter)
		if lacks := 1 - limiter.TokensAt(now); lacks > roundingError {
			wait := time.Duration(math.Ceil(lacks / float64(b.limit) * float64(time.Second)))
			if d.allowed || wait > d.retryAfter {
				*d = decision{reason: rateReached, by: d.by, rate: i, retryAfter: wait}
			}
		}
	}
	if d.allowed {
		for _, limiter := range due {
			limiter.ReserveN(now, 1)
		}
		return
	}
	d.text = "Rate limit reached: try again in " + seconds(d.retryAfter)
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
	switch b.Per {
	case PerTool:
		return bucketKey{name: tool}
	case PerSession:
		session, _ := view.Lookup("session.id")
		return bucketKey{name: session.Value}
	}
	tenant, _ := view.Lookup("principal.tenant")
	if b.Per == PerTenant {
		return bucketKey{tenant: tenant.Value}
	}
	user, _ := view.Lookup("principal.user")
	return bucketKey{tenant.Value, user.Value}
}

// limiter returns the limiter of a key. At maxBuckets it replaces the bucket that
// was used longest ago, if that is full again and so no different from a new one.
// If it is not, all further keys share one bucket, so that nobody gets tokens by
// making up keys.
func (b *buckets) limiter(key bucketKey, now time.Time) *rate.Limiter {
	if at, ok := b.byKey[key]; ok {
		b.order.MoveToFront(at)
		return at.Value.(*bucket).limiter
	}
	if len(b.byKey) >= maxBuckets {
		oldest := b.order.Back()
		old := oldest.Value.(*bucket)
		if old.limiter.TokensAt(now) < float64(b.Burst) {
			if b.rest == nil {
				b.rest = rate.NewLimiter(b.limit, b.Burst)
			}
			return b.rest
		}
		delete(b.byKey, old.key)
		b.order.Remove(oldest)
	}
	// The key may be a slice of a frame; a copy does not keep the frame in memory.
	key = bucketKey{strings.Clone(key.tenant), strings.Clone(key.name)}
	limiter := rate.NewLimiter(b.limit, b.Burst)
	b.byKey[key] = b.order.PushFront(&bucket{key, limiter})
	return limiter
}
