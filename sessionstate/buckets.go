package sessionstate

import (
	"context"
	"time"
)

// A Bucket is a token bucket that several processes share. It gains one token per Every and
// holds at most Burst.
type Bucket struct {
	Tenant string // "" if the bucket belongs to no tenant
	Name   string // unique among the buckets of the tenant
	Every  time.Duration
	Burst  int
}

// A Demand is the request of a process to a [Lender].
type Demand struct {
	Want    int   // tokens that the process wants to borrow
	Back    int   // borrowed tokens that the process returns unspent
	Counted int64 // Counted of the previous Loan, 0 for the first one
}

// A Loan is the answer to a [Demand].
type Loan struct {
	Tokens    int           // fewer than Want if the bucket has no more
	Full      time.Duration // time until the bucket is full again
	Processes int           // number of processes that borrowed lately, including this one
	Counted   int64         // for the next Demand
}

// A Lender lends tokens from shared buckets. It is safe for use by several goroutines and
// processes. After an error no tokens were lent, and the returned ones may be lost.
type Lender interface {
	Lend(ctx context.Context, b Bucket, d Demand) (Loan, error)
}
