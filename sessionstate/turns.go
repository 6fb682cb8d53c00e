package sessionstate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An Outcome reports how the turn that a caller took has ended.
type Outcome uint8

const (
	// Open: the briefing was not carried. The turn is free again.
	Open Outcome = iota
	// Seen: the briefing was carried where the client shows it. There is no further turn.
	Seen
	// Unseen: the briefing was carried where the client may not show it. The turn is
	// free again, and Take tells how often that has happened.
	Unseen
)

// String returns the outcome's name.
func (o Outcome) String() string {
	if o <= Unseen {
		return [...]string{"open", "seen", "unseen"}[o]
	}
	return "unknown outcome"
}

// Lease is how long a turn is held that nobody settles. The holder must settle it within this
// time; if the holder has died, the turn becomes free.
const Lease = time.Minute

// ErrNoKey is returned for an empty key, which names no session. The caller must find out the
// session's key first, and must not give the briefing.
var ErrNoKey = errors.New("no session key: find out the session before its turn is taken")

// Turns keeps the turn of each session, which is the right to give its briefing once. It is
// safe for use by several goroutines, and by several processes if it outlives the process.
//
// Errors other than [ErrNoKey] mean that Turns could not answer; the caller continues without
// it.
type Turns interface {
	// Take asks for the turn of key. At most one of many callers gets true: it is
	// theirs, and then holds the turn until it settles it or [Lease] is over. unseen is
	// how often a turn of key was settled as Unseen. A key that was unused for at least idle
	// counts as forgotten, whether or not it was swept; 0 stands for no such time.
	Take(ctx context.Context, key string, idle time.Duration) (mine bool, unseen int, err error)

	// Settle reports how the turn has ended. An outcome of Seen or Unseen counts even if
	// the lease ran out meanwhile, for the briefing has been carried; Open never opens
	// what is closed. Call it with a context that outlives the call's: a turn that is
	// not settled is free only after its lease.
	Settle(ctx context.Context, key string, o Outcome) error

	// Sweep forgets the keys that were neither taken nor settled for at least idle, and
	// returns how many. Every Take counts, also one that returned false. A turn that is
	// held is not forgotten.
	Sweep(ctx context.Context, idle time.Duration) (int, error)
}

// MemoryTurns keeps turns in the memory of this process, and is the specification of all
// other Turns. It keeps at most [DefaultMax] keys, each of 256 bytes at most, and forgets
// the key longest unused for the next.
type MemoryTurns struct {
	now func() time.Time

	mu    sync.Mutex
	turns *lru[turn] // guarded by mu
}

// turn is what is kept of a key: it is held until a time, or closed for good, or free.
type turn struct {
	heldUntil time.Time
	unseen    int
	closed    bool
}

// NewMemoryTurns returns empty Turns with the given clock; nil means time.Now.
func NewMemoryTurns(now func() time.Time) *MemoryTurns {
	if now == nil {
		now = time.Now
	}
	return &MemoryTurns{now: now, turns: newLRU[turn](DefaultMax)}
}

// Take implements [Turns].
func (m *MemoryTurns) Take(ctx context.Context, key string, idle time.Duration) (mine bool, unseen int, err error) {
	if key == "" {
		return false, 0, ErrNoKey
	}
	if err := ctx.Err(); err != nil {
		return false, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if idle > 0 {
		m.sweep(now, idle)
	}
	t := &m.turns.use(key, now).value
	if t.closed || now.Before(t.heldUntil) {
		return false, t.unseen, nil
	}
	t.heldUntil = now.Add(Lease)
	return true, t.unseen, nil
}

// Settle implements [Turns]. It does not wait for anything, so it settles even when ctx
// is over.
func (m *MemoryTurns) Settle(_ context.Context, key string, o Outcome) error {
	if key == "" {
		return ErrNoKey
	}
	if o > Unseen {
		return fmt.Errorf("outcome %d is not known: use Open, Seen or Unseen", o)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &m.turns.use(key, m.now()).value
	t.heldUntil = time.Time{}
	switch o {
	case Seen:
		t.closed = true
	case Unseen:
		t.unseen++
	}
	return nil
}

// Sweep implements [Turns].
func (m *MemoryTurns) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sweep(m.now(), idle), nil
}

func (m *MemoryTurns) sweep(now time.Time, idle time.Duration) int {
	return m.turns.sweep(now, idle, func(t *turn) bool { return now.Before(t.heldUntil) })
}

var _ Turns = (*MemoryTurns)(nil)
