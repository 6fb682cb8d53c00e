package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/attache-mcp/attache/sessionstate"
)

// Down selects what happens to a call while the Lender of its rates does not answer.
type Down string

const (
	// DownShare counts the call in this process, whose limit is then the configured limit divided
	// by the number of processes that used the bucket lately. A process that never had an answer
	// uses the whole limit.
	DownShare Down = "share"
	// DownClosed refuses the call.
	DownClosed Down = "closed"
)

const (
	// loanTime is how long borrowed tokens may be spent. A process borrows no more tokens than
	// the bucket gains in this time, and no more than a tenth of the bucket (loanShare), so that
	// idle processes keep few tokens from the others.
	loanTime, loanShare = 10 * time.Second, 10
	// askTime bounds how long the Lender may take, waitTime how long a call waits for it.
	askTime, waitTime = 3 * time.Second, time.Second
	// retryTime is how long the Lender is not asked after it failed, emptyTime the least time
	// for which it is not asked again for a bucket that was empty.
	retryTime, emptyTime = time.Second, 100 * time.Millisecond
	// maxAsking bounds the requests to the Lender at one time, so that other parts of the
	// process find a connection to the database.
	maxAsking = 4
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

// ask asks the Lender for tokens of the buckets whose state is unknown. It returns a channel
// that is closed when the Lender has answered for one of them.
func (l *Limiters) ask(due []*bucket, a attempt) (answered <-chan struct{}) {
	for _, k := range due {
		if _, state := l.wait(k, a); state != unknown {
			continue
		}
		if k.loan.answered == nil {
			k.loan.answered = make(chan struct{})
			go l.borrow(k, k.loan.demand(a.now), a.now)
		}
		answered = k.loan.answered
	}
	return answered
}

// demand returns the next request to the Lender: for twice as many tokens as the last one if
// those were spent in time, else for one token. So a process with few calls keeps no tokens
// from the others.
func (n *loan) demand(now time.Time) sessionstate.Demand {
	d := sessionstate.Demand{Back: n.tokens, Counted: n.counted}
	if n.size = min(2*n.size, n.max); !now.Before(n.expires) {
		n.size = 1
	}
	n.tokens, d.Want = 0, n.size
	return d
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

// accept makes the tokens of a loan usable. asked is the time of the request.
func (k *bucket) accept(got sessionstate.Loan, asked, now time.Time) {
	n := k.loan
	n.tokens, n.expires, n.fullAt, n.counted = got.Tokens, asked.Add(loanTime), now.Add(got.Full), got.Counted
	if got.Tokens == 0 {
		next := got.Full - time.Duration(n.bucket.Burst-1)*n.bucket.Every
		n.emptyTill = now.Add(max(next, emptyTime))
	}
	if p := max(got.Processes, 1); p != n.processes {
		n.processes = p
		k.limiter.SetLimitAt(now, n.limit/rate.Limit(p))
		k.limiter.SetBurstAt(now, max(n.bucket.Burst/p, 1))
	}
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
