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

// Down says what happens to a call while the Lender of its rates does not answer.
type Down string

const (
	// DownShare counts the call in this process, which has the limit divided by the number of
	// processes that used it lately. A process that was never answered has all of it.
	DownShare Down = "share"
	// DownClosed refuses the call.
	DownClosed Down = "closed"
)

const (
	// loanTime is how long tokens may be spent after they were lent. A process borrows as many
	// as the bucket gains in this time at most, and a tenth of the bucket, so that processes
	// that do not call keep few from the others.
	loanTime, loanShare = 10 * time.Second, 10
	// askTime bounds how long the Lender may take, waitTime how long a call waits for it.
	askTime, waitTime = 3 * time.Second, time.Second
	// awayTime is how long a Lender that failed is not asked, and emptyTime how long it is not
	// asked at least for a bucket that was empty.
	awayTime, emptyTime = time.Second, 100 * time.Millisecond
	// maxLoans is how many are asked for at once, so that others of the process find a
	// connection to the database.
	maxLoans = 4
)

// A loan is what this process has borrowed from a bucket. Limiters.mu guards it.
type loan struct {
	bucket    sessionstate.Bucket
	limit     rate.Limit
	size, max int // tokens that were wanted last, and that are wanted at most

	tokens    int           // left
	until     time.Time     // when they may not be spent any more
	empty     time.Time     // the bucket has no token before
	full      time.Time     // the bucket is full again
	processes int           // that share the bucket
	counted   int64         // see [sessionstate.Demand]
	answered  chan struct{} // closed when the Lender has answered; nil if it was not asked
}

func (b *buckets) newLoan(key bucketKey, kind string) *loan {
	every := max((b.Window+time.Duration(b.Limit)-1)/time.Duration(b.Limit), 1) // rounded up: the limit holds
	name := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d %d %d %q %q", b.server, b.Tools, b.Per, b.Limit, b.Window, b.Burst, b.nth, kind, key.name))
	return &loan{
		bucket:    sessionstate.Bucket{Tenant: key.tenant, Name: hex.EncodeToString(name[:16]), Every: every, Burst: b.Burst},
		limit:     b.limit,
		max:       max(min(int(loanTime/every), b.Burst/loanShare), 1),
		processes: 1,
	}
}

func (n *loan) has(now time.Time) bool { return n.tokens > 0 && now.Before(n.until) }

// isBack reports whether the bucket is full and this process is about to borrow nothing.
func (n *loan) isBack(now time.Time) bool {
	return n.answered == nil && !n.has(now) && !now.Before(n.full)
}

// A bucketState says who counts the calls of a bucket.
type bucketState int

const (
	counted bucketState = iota // it is known whether there is a token
	unknown                    // the Lender has to be asked
	away                       // the Lender does not answer, and the process has its share
)

// wait returns how long until the bucket has a token, 0 if it has one or is unknown.
func (l *Limiters) wait(k *bucket, a attempt) (time.Duration, bucketState) {
	n := k.loan
	switch {
	case n == nil:
		return k.ownWait(a.now), counted
	case n.has(a.now):
		return 0, counted
	case a.now.Before(n.empty):
		return n.empty.Sub(a.now), counted
	case a.now.Before(l.away) || a.late && n.answered != nil:
		return k.ownWait(a.now), away
	case a.late: // others took what was lent meanwhile
		return emptyTime, counted
	}
	return 0, unknown
}

// ask asks the Lender for the buckets that are unknown, and returns a channel that is closed
// when it has answered for one of them.
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

// demand returns what to ask for: twice as much as the time before, if that was spent in time,
// or one token. So a process that seldom calls keeps nothing from the others.
func (n *loan) demand(now time.Time) sessionstate.Demand {
	d := sessionstate.Demand{Back: n.tokens, Counted: n.counted}
	if n.size = min(2*n.size, n.max); !now.Before(n.until) {
		n.size = 1
	}
	n.tokens, d.Want = 0, n.size
	return d
}

func (l *Limiters) borrow(k *bucket, d sessionstate.Demand, asked time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	got, err := l.lend(ctx, k.loan.bucket, d)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(k.loan.answered)
	k.loan.answered = nil
	now := l.now()
	if err != nil {
		l.away = now.Add(awayTime)
		return
	}
	l.away = time.Time{}
	k.accept(got, asked, now)
}

func (l *Limiters) lend(ctx context.Context, b sessionstate.Bucket, d sessionstate.Demand) (sessionstate.Loan, error) {
	select {
	case l.loans <- struct{}{}:
	case <-ctx.Done():
		return sessionstate.Loan{}, ctx.Err()
	}
	defer func() { <-l.loans }()
	return l.Lender.Lend(ctx, b, d)
}

// accept puts a loan in force that was asked for at a time.
func (k *bucket) accept(got sessionstate.Loan, asked, now time.Time) {
	n := k.loan
	n.tokens, n.until, n.full, n.counted = got.Tokens, asked.Add(loanTime), now.Add(got.Full), got.Counted
	if got.Tokens == 0 {
		next := got.Full - time.Duration(n.bucket.Burst-1)*n.bucket.Every
		n.empty = now.Add(max(next, emptyTime))
	}
	if p := max(got.Processes, 1); p != n.processes {
		n.processes = p
		k.limiter.SetLimitAt(now, n.limit/rate.Limit(p))
		k.limiter.SetBurstAt(now, max(n.bucket.Burst/p, 1))
	}
}

// Close gives back the tokens that are left, as far as it can before ctx is over.
func (l *Limiters) Close(ctx context.Context) {
	for _, n := range l.left() {
		if _, err := l.Lender.Lend(ctx, n.bucket, sessionstate.Demand{Back: n.tokens, Counted: n.counted}); err != nil {
			return
		}
	}
}

// left returns the loans with unspent tokens, and takes the tokens out of use.
func (l *Limiters) left() (all []loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Lender == nil || l.now == nil || l.now().Before(l.away) {
		return nil
	}
	for _, b := range l.rates {
		for at := b.order.Front(); at != nil; at = at.Next() {
			if n := at.Value.(*bucket).loan; n.has(l.now()) {
				all = append(all, *n)
				n.tokens = 0
			}
		}
	}
	return all
}
