package sessionstate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An Outcome says what became of the turn that a caller took.
type Outcome uint8

const (
	// Open: the briefing was not carried. The turn is free again.
	Open Outcome = iota
	// Given: the briefing was carried. There is no further turn.
	Given
	// Deferred: the briefing was carried where the model may not see it (beside
	// structuredContent). The turn is free again until it has been deferred
	// [MaxDeferred] times; then it is as if Given.
	Deferred
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Open:
		return "open"
	case Given:
		return "given"
	case Deferred:
		return "deferred"
	}
	return "unknown outcome"
}

const (
	// MaxDeferred is how often a briefing is carried without being sure that it
	// is seen.
	MaxDeferred = 3
	// Lease is how long a turn is held without being settled. Whoever takes a
	// turn settles it well within this time; a turn whose holder died is free
	// again after it.
	Lease = time.Minute
)

// ErrNoKey is returned for an empty key, which names no session. The caller has
// forgotten to find out the session's key; the briefing is not to be given.
var ErrNoKey = errors.New("no session key: find out the session before its turn is taken")

// A Store keeps the turn of each session: the right to carry its briefing, given
// once. It is safe for use by several goroutines, and, if what it keeps outlives
// the process, by several processes.
//
// Errors other than [ErrNoKey] mean that the store could not answer; the caller
// goes without the briefing.
type Store interface {
	// Take asks for the turn of key. Of many callers at most one is told true,
	// and then holds the turn until it settles it or [Lease] is over.
	Take(ctx context.Context, key string) (bool, error)
	// Settle says what became of the turn. An outcome of Given or Deferred counts
	// even if the lease ran out meanwhile, for the briefing has been carried; Open
	// never opens what is closed. Call it with a context that outlives the call's:
	// a turn that is not settled is free only after its lease.
	Settle(ctx context.Context, key string, o Outcome) error
	// Sweep forgets the keys that were neither taken nor settled for at least
	// idle, and says how many. Every Take counts, also one that is told false. A
	// turn that is held is not forgotten.
	Sweep(ctx context.Context, idle time.Duration) (int, error)
}

// MemoryStore is a Store in the memory of this process, and the specification of
// all others. It keeps at most [DefaultMax] keys and forgets the one longest
// unused for the next.
type MemoryStore struct {
	now func() time.Time

	mu    sync.Mutex
	turns *recent[turn] // guarded by mu
}

// turn is what is kept of a key. Held, free and closed are read from it: held
// until a time, and closed for good.
type turn struct {
	heldUntil time.Time
	deferred  int
	closed    bool
}

// NewMemoryStore returns an empty store with the given clock; nil means time.Now.
func NewMemoryStore(now func() time.Time) *MemoryStore {
	if now == nil {
		now = time.Now
	}
	return &MemoryStore{now: now, turns: newRecent[turn](DefaultMax)}
}

// Take implements [Store].
func (m *MemoryStore) Take(ctx context.Context, key string) (bool, error) {
	if key == "" {
		return false, ErrNoKey
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	t := &m.turns.use(key, now).value
	if t.closed || now.Before(t.heldUntil) {
		return false, nil
	}
	t.heldUntil = now.Add(Lease)
	return true, nil
}

// Settle implements [Store]. It does not wait for anything, so it settles even
// when ctx is over.
func (m *MemoryStore) Settle(_ context.Context, key string, o Outcome) error {
	if key == "" {
		return ErrNoKey
	}
	if o > Deferred {
		return fmt.Errorf("outcome %d is not known: use Open, Given or Deferred", o)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &m.turns.use(key, m.now()).value
	t.heldUntil = time.Time{}
	if o == Deferred {
		t.deferred++
	}
	if o == Given || t.deferred >= MaxDeferred {
		t.closed = true
	}
	return nil
}

// Sweep implements [Store].
func (m *MemoryStore) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	held := func(t *turn) bool { return now.Before(t.heldUntil) }
	return m.turns.sweep(now, idle, held), nil
}

var _ Store = (*MemoryStore)(nil)
