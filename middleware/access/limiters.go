package access

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"strconv"
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

const (
	// askTime bounds how long the Lender may take, waitTime how long a call waits for it.
	askTime, waitTime = 3 * time.Second, time.Second
	// retryTime is how long the Lender is not asked after it failed.
	retryTime = time.Second
	// maxAsking bounds the requests to the Lender at one time, so that other parts of the
	// process find a connection to the database.
	maxAsking = 4
)

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
	due := array[:0]
	var unclear []*bucket // the Lender has to be asked for them
	for i, b := range rates {
		matches, err := glob.Match(b.Tools, tool)
		if err != nil {
			*d = undecided(byDefaultRule, err)
			return nil
		}
		if !matches {
			continue
		}
		k := b.bucket(b.key(view, tool), view, a.now)
		due = append(due, k)
		wait, state := l.wait(k, a)
		if state == unknown {
			unclear = append(unclear, k)
		}
		if state == unavailable && a.down == DownClosed {
			*d = decision{step: step{reason: rateUnknown}, rate: i, text: textRateUnknown}
			return nil
		}
		// Of several rates that are reached, the refusal names the one with the longest wait.
		if wait > 0 && (d.allowed || wait > d.retryAfter) {
			*d = decision{step: step{reason: rateReached}, by: d.by, rate: i, retryAfter: wait}
		}
	}
	switch {
	case !d.allowed:
		d.text = "Rate limit reached: try again in " + seconds(d.retryAfter)
	case len(unclear) > 0:
		return l.ask(unclear, a.now)
	default:
		for _, k := range due {
			k.spend(a.now)
		}
	}
	return nil
}

func seconds(d time.Duration) string {
	n := int64((d + time.Second - 1) / time.Second)
	if n <= 1 {
		return "1 second"
	}
	return strconv.FormatInt(n, 10) + " seconds"
}

// A bucketState states whether the tokens of a bucket are known.
type bucketState int

const (
	known       bucketState = iota // it is known whether the bucket has a token
	unknown                        // the Lender has to be asked
	unavailable                    // the Lender does not answer, so the process uses its share
)

// wait returns how long it takes until the bucket has a token, 0 if it has one or its state is unknown.
func (l *Limiters) wait(k *bucket, a attempt) (time.Duration, bucketState) {
	n := k.loan
	switch {
	case n == nil:
		return k.limiterWait(a.now), known
	case n.hasToken(a.now):
		return 0, known
	case a.now.Before(n.emptyTill):
		return n.emptyTill.Sub(a.now), known
	case a.now.Before(l.retryAt) || a.late && n.answered != nil:
		return k.limiterWait(a.now), unavailable
	case a.late: // other calls have spent the borrowed tokens
		return emptyTime, known
	}
	return 0, unknown
}

// ask asks the Lender for tokens of the buckets. It returns a channel that is closed when the Lender has
// answered for one of them.
func (l *Limiters) ask(unclear []*bucket, now time.Time) (answered <-chan struct{}) {
	for _, k := range unclear {
		if k.loan.answered == nil {
			k.loan.answered = make(chan struct{})
			go l.borrow(k, k.loan.demand(now), now)
		}
		answered = k.loan.answered
	}
	return answered
}

// borrow asks the Lender and closes the loan's channel.
func (l *Limiters) borrow(k *bucket, d sessionstate.Demand, asked time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	got, err := l.lend(ctx, k.loan.bucket, d)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(k.loan.answered)
	k.loan.answered = nil
	now := time.Now()
	if err != nil {
		l.retryAt = now.Add(retryTime)
		return
	}
	l.retryAt = time.Time{}
	k.accept(got, asked, now)
}

// lend calls the Lender when fewer than maxAsking requests are running.
func (l *Limiters) lend(ctx context.Context, b sessionstate.Bucket, d sessionstate.Demand) (sessionstate.Loan, error) {
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return sessionstate.Loan{}, ctx.Err()
	}
	defer func() { <-l.asking }()
	return l.Lender.Lend(ctx, b, d)
}

// Close returns the unspent tokens to the Lender. It stops at the first error and when ctx is done.
func (l *Limiters) Close(ctx context.Context) {
	for _, n := range l.unspentLoans() {
		if _, err := l.Lender.Lend(ctx, n.bucket, sessionstate.Demand{Back: n.tokens, Counted: n.counted}); err != nil {
			return
		}
	}
}

// unspentLoans returns copies of the loans with unspent tokens, and makes these tokens unusable.
func (l *Limiters) unspentLoans() (unspent []loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.Lender == nil || now.Before(l.retryAt) {
		return nil
	}
	for _, b := range l.rates {
		for at := b.order.Front(); at != nil; at = at.Next() {
			if n := at.Value.(*bucket).loan; n.hasToken(now) {
				unspent = append(unspent, *n)
				n.tokens = 0
			}
		}
	}
	return unspent
}
