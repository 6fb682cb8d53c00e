package sessionstate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An Outcome is the result of a turn.
type Outcome uint8

const (
	// Open means that the briefing was not delivered. The turn is free again.
	Open Outcome = iota
	// Seen means that the briefing was delivered where the client shows it. There is no
	// further turn.
	Seen
	// Unseen means that the briefing was delivered where the client may not show it. The
	// turn is free again, and Take returns how often this has happened.
	Unseen
)

// Lease is how long a caller may hold a turn before it settles it. Then the turn is free again,
// because the holder may have died.
const Lease = time.Minute

// ErrNoKey is returned for an empty key, which names no session. The caller must determine the
// session's key first, and must not give the briefing.
var ErrNoKey = errors.New("no session key: find out the session before its turn is taken")

// Turns manages the turn of each session, which is the right to give its briefing once. It is
// safe for use by several goroutines, and a persistent one also by several processes.
//
// Errors other than [ErrNoKey] mean that Turns is unavailable; the caller continues without
// it.
type Turns interface {
	// Take asks for the turn of key. It returns true to at most one of many callers, which
	// then holds the turn until it calls Settle or [Lease] has passed. unseen is how often
	// a turn of key was settled as Unseen. A key that has been unused for at least idle
	// counts as new, even if it was not swept; 0 means no limit.
	Take(ctx context.Context, key string, idle time.Duration) (mine bool, unseen int, err error)

	// Settle records the outcome of a turn. Seen and Unseen count even if the lease has
	// expired, because the briefing was delivered. Open never reopens a turn that was
	// Seen. Call Settle with a context that outlives the call's, or the turn stays held
	// until its lease expires.
	Settle(ctx context.Context, key string, o Outcome) error

	// Sweep removes the keys that were neither taken nor settled for at least idle, and
	// returns how many. A Take that returned false counts too. Sweep keeps turns that are
	// held.
	Sweep(ctx context.Context, idle time.Duration) (int, error)
}

// MemoryTurns is an implementation of [Turns] in memory, and the specification of all others.
// It stores at most [DefaultMax] keys of at most 256 bytes each, and removes the least recently
// used key when it is full.
type MemoryTurns struct {
	now func() time.Time

	mu    sync.Mutex
	turns *lru[turn] // guarded by mu
}

// turn is the state of a key.
type turn struct {
	heldUntil time.Time
	unseen    int  // how often it was settled as Unseen
	closed    bool // it was settled as Seen
}

// NewMemoryTurns returns an empty MemoryTurns with the given clock; nil means time.Now.
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

// Settle implements [Turns]. It settles even if the context is done.
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
