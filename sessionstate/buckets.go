package sessionstate

import (
	"context"
	"time"
)

// A Bucket is a token bucket that several processes share. It gains a token in each Every, and
// holds Burst of them.
type Bucket struct {
	Tenant string // whose it is, "" if it is no tenant's
	Name   string // differs from those of other buckets of the tenant
	Every  time.Duration
	Burst  int
}

// A Demand is what a process asks of a [Lender].
type Demand struct {
	Want    int   // tokens, which the process alone may spend then
	Back    int   // tokens that the process was lent and has not spent
	Counted int64 // that of the Loan before, 0 for the first one
}

// A Loan is the answer to a [Demand].
type Loan struct {
	Tokens    int           // fewer than the process wants if the bucket has no more
	Full      time.Duration // until the bucket is full again
	Processes int           // that asked for tokens of the bucket lately, this one included
	Counted   int64         // for the next Demand
}

// A Lender has the buckets that processes share. It is safe for use by several goroutines and
// processes. An error means that the demand was not met; tokens that it gives back may be lost.
type Lender interface {
	Lend(ctx context.Context, b Bucket, d Demand) (Loan, error)
}
