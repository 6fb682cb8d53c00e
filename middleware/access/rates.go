package access

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate"
)

// Per says who shares the bucket of a rate.
type Per string

// Those who may share a bucket. Users of two tenants are never one user.
const (
	PerSession Per = "session"
	PerUser    Per = "user"
	PerTenant  Per = "tenant"
	PerTool    Per = "tool"
)

// A Rate bounds how often tools are called: Limit times in each Window, evenly,
// and up to Burst at once.
type Rate struct {
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	Per   Per
	// Limit is how many calls there may be in a Window.
	Limit  int
	Window time.Duration
	// Burst is how many may come at once; 0 stands for Limit.
	Burst int
}

// Check says what makes no sense in the rate; nil if nothing does.
func (r *Rate) Check() error {
	switch r.Per {
	case PerSession, PerUser, PerTenant, PerTool:
	default:
		return fmt.Errorf("per is %q: write session, user, tenant or tool", string(r.Per))
	}
	if r.Limit < 1 || r.Window <= 0 || r.Burst < 0 {
		return errors.New("a rate needs a limit such as 60/minute, and no burst below one")
	}
	return glob.Check(r.Tools)
}

// ParseLimit reads a limit such as 60/minute, 5/s or 100/15m.
func ParseLimit(s string) (limit int, window time.Duration, err error) {
	count, unit, _ := strings.Cut(s, "/")
	limit, err = strconv.Atoi(strings.TrimSpace(count))
	switch unit = strings.TrimSpace(unit); unit {
	case "second", "s":
		window = time.Second
	case "minute", "m", "min":
		window = time.Minute
	case "hour", "h":
		window = time.Hour
	case "day", "d":
		window = 24 * time.Hour
	default:
		window, _ = time.ParseDuration(unit)
	}
	if err != nil || limit < 1 || window <= 0 {
		return 0, 0, fmt.Errorf("%q is no limit: write a number of calls and a time, such as 60/minute or 100/15m", s)
	}
	return limit, window, nil
}

// maxBuckets bounds the buckets of one rate. Their keys may be the client's to
// choose.
const maxBuckets = 10_000

// roundingError is by how much of a call a bucket may come short: fractions of a
// second are floating point numbers.
const roundingError = 1e-6

// buckets are those of one rate, in the order of their last use. A Memory has
// them, and its lock guards them.
type buckets struct {
	Rate
	limit rate.Limit
	byKey map[bucketKey]*list.Element
	order list.List // of *bucket; the front was used last
	rest  *rate.Limiter
}

type bucketKey struct{ tenant, name string }

type bucket struct {
	key     bucketKey
	limiter *rate.Limiter
}

// newBuckets returns the buckets of a rate, of which r has a burst.
func newBuckets(r Rate) *buckets {
	limit := rate.Limit(float64(r.Limit) / r.Window.Seconds())
	return &buckets{Rate: r, limit: limit, byKey: map[bucketKey]*list.Element{}}
}

// take takes one from every bucket the call falls into, or from none and makes
// d a refusal.
func (m *Memory) take(rates []*buckets, d *Decision, view *sessionstate.Context, tool string, now time.Time) {
	if len(rates) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var spare [4]*rate.Limiter
	due := spare[:0]
	for i, b := range rates {
		named, err := glob.Match(b.Tools, tool)
		if err != nil {
			*d = undecided(none, err)
			return
		}
		if !named {
			continue
		}
		l := b.bucket(b.key(view, tool), now)
		due = append(due, l)
		if lacks := 1 - l.TokensAt(now); lacks > roundingError {
			wait := time.Duration(math.Ceil(lacks / float64(b.limit) * float64(time.Second)))
			if d.Allowed || wait > d.RetryAfter {
				*d = Decision{Reason: RateReached, Rule: d.Rule, Rate: i, RetryAfter: wait}
			}
		}
	}
	if d.Allowed {
		for _, l := range due {
			l.ReserveN(now, 1)
		}
		return
	}
	d.Text = "Rate limit reached: try again in " + seconds(d.RetryAfter)
}

func seconds(d time.Duration) string {
	n := int64((d + time.Second - 1) / time.Second)
	if n <= 1 {
		return "1 second"
	}
	return strconv.FormatInt(n, 10) + " seconds"
}

// key returns whose bucket a call takes from.
func (b *buckets) key(view *sessionstate.Context, tool string) bucketKey {
	if b.Per == PerTool {
		return bucketKey{name: tool}
	}
	if b.Per == PerSession {
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

// bucket returns the bucket of a key. One is given up for a new one only when it
// is full again, and so like a new one; while all are in use, the keys there is
// no room for share one, so that nobody gets a fresh bucket by making up names.
func (b *buckets) bucket(key bucketKey, now time.Time) *rate.Limiter {
	if at, ok := b.byKey[key]; ok {
		b.order.MoveToFront(at)
		return at.Value.(*bucket).limiter
	}
	if len(b.byKey) >= maxBuckets {
		oldest := b.order.Back()
		if old := oldest.Value.(*bucket); old.limiter.TokensAt(now) >= float64(b.Burst) {
			delete(b.byKey, old.key)
			b.order.Remove(oldest)
		} else {
			if b.rest == nil {
				b.rest = rate.NewLimiter(b.limit, b.Burst)
			}
			return b.rest
		}
	}
	// The key may be a slice of a frame, which must not be kept in memory whole.
	key = bucketKey{strings.Clone(key.tenant), strings.Clone(key.name)}
	l := rate.NewLimiter(b.limit, b.Burst)
	b.byKey[key] = b.order.PushFront(&bucket{key, l})
	return l
}
