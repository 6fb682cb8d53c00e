package sqlitestore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// DefaultWait is how long a method waits for another process that has the file
// locked. One statement takes well under a millisecond, and a new file a few writes that
// the disk has to confirm.
const DefaultWait = time.Second

// Options configure a Store.
type Options struct {
	// Path is the file. It is made for its owner alone if it is not there, and so is
	// its directory.
	Path string
	// Wait is how long to wait for a lock; 0 stands for [DefaultWait].
	Wait time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// A Store keeps turns in a file. Several processes, and several goroutines of each,
// may use one file at once; one process opens it once.
type Store struct {
	db  *sql.DB
	now func() time.Time
	max int // how many keys Sweep leaves
}

// Close lets go of the file. A process that ends without it loses nothing.
func (s *Store) Close() error { return s.db.Close() }

// held is the condition that a turn is held at ?1. A turn that would be held for longer
// than twice the lease, ?2, was taken before the clock was set back, and is free. Once
// the lease would be too little: whoever waits for the lock looks at the clock before
// the one it waits for.
const held = `(held_until > ?1 AND held_until <= ?1 + 2 * ?2)`

// Take implements [sessionstate.Store].
func (s *Store) Take(ctx context.Context, key string) (bool, error) {
	if key == "" {
		return false, sessionstate.ErrNoKey
	}
	now := s.now().UnixNano()
	n, err := s.exec(ctx, `INSERT INTO turns (key, used, held_until) VALUES (?3, ?1, ?1 + ?2)
		ON CONFLICT (key) DO UPDATE SET used = ?1, held_until = ?1 + ?2 WHERE NOT closed AND NOT `+held,
		now, int64(sessionstate.Lease), digest(key))
	if err != nil {
		return false, fmt.Errorf("taking the turn: %w", err)
	}
	if n > 0 {
		return true, nil
	}
	if _, err := s.exec(ctx, `UPDATE turns SET used = ?1 WHERE key = ?2`, now, digest(key)); err != nil {
		return false, fmt.Errorf("noting the use of a turn: %w", err)
	}
	return false, nil
}

// Settle implements [sessionstate.Store]. It settles even when ctx is over.
func (s *Store) Settle(ctx context.Context, key string, o sessionstate.Outcome) error {
	if key == "" {
		return sessionstate.ErrNoKey
	}
	if o > sessionstate.Deferred {
		return fmt.Errorf("outcome %d is not known: use Open, Given or Deferred", o)
	}
	_, err := s.exec(context.WithoutCancel(ctx), `INSERT INTO turns (key, used, deferred, closed) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (key) DO UPDATE SET used = ?2, held_until = 0, deferred = deferred + ?3,
			closed = closed OR ?4 OR deferred + ?3 >= ?5`,
		digest(key), s.now().UnixNano(), o == sessionstate.Deferred, o == sessionstate.Given, sessionstate.MaxDeferred)
	if err != nil {
		return fmt.Errorf("settling the turn: %w", err)
	}
	return nil
}

// Sweep implements [sessionstate.Store]. It also forgets the keys that are more than
// [sessionstate.DefaultMax], those longest unused first.
func (s *Store) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	now := s.now()
	n, err := s.exec(ctx, `DELETE FROM turns WHERE NOT `+held+` AND (used <= ?3
		OR key IN (SELECT key FROM turns ORDER BY used DESC LIMIT -1 OFFSET ?4))`,
		now.UnixNano(), int64(sessionstate.Lease), now.Add(-idle).UnixNano(), s.max)
	if err != nil {
		return 0, fmt.Errorf("forgetting old turns: %w", err)
	}
	return n, nil
}

// exec runs one statement, and says how many rows it changed.
func (s *Store) exec(ctx context.Context, query string, args ...any) (int, error) {
	result, err := s.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// digest is what is kept of a key.
func digest(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

var _ sessionstate.Store = (*Store)(nil)
