package sqlitestore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// DefaultWait is how long a method waits while another process has the file locked. One
// statement takes well under a millisecond; a new file takes a few synchronous writes.
const DefaultWait = time.Second

// Options are the options of [Open].
type Options struct {
	// Path is the file. If it does not exist, Open creates it and its directory, for their
	// owner alone.
	Path string
	// Wait is how long to wait for a lock; 0 stands for [DefaultWait].
	Wait time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Turns keeps turns in a file. Several processes, and several goroutines of each,
// may use one file at once; one process opens it once.
type Turns struct {
	db  *sql.DB
	now func() time.Time
	max int // how many keys Sweep leaves
}

// Close closes the file. A process that ends without Close loses nothing.
func (t *Turns) Close() error { return t.db.Close() }

// held is the condition that a turn is held at ?1. A turn that would be held for longer
// than twice the lease, ?2, was taken before the clock was set back, and is free. One
// lease would be too little: a process that waits for the lock has read the clock before
// the process that it waits for.
const held = `(held_until > ?1 AND held_until <= ?1 + 2 * ?2)`

// Take implements [sessionstate.Turns].
func (t *Turns) Take(ctx context.Context, key string) (mine bool, unseen int, err error) {
	if key == "" {
		return false, 0, sessionstate.ErrNoKey
	}
	now := t.now().UnixNano()
	taken := t.db.QueryRowContext(ctx, `INSERT INTO turns (key, used, held_until) VALUES (?3, ?1, ?1 + ?2)
		ON CONFLICT (key) DO UPDATE SET used = ?1, held_until = ?1 + ?2 WHERE NOT closed AND NOT `+held+`
		RETURNING deferred`,
		now, int64(sessionstate.Lease), digest(key))
	switch err := taken.Scan(&unseen); {
	case err == nil:
		return true, unseen, nil
	case !errors.Is(err, sql.ErrNoRows):
		return false, 0, fmt.Errorf("taking the turn: %w", err)
	}
	used := t.db.QueryRowContext(ctx, `UPDATE turns SET used = ?1 WHERE key = ?2 RETURNING deferred`, now, digest(key))
	if err := used.Scan(&unseen); err != nil && !errors.Is(err, sql.ErrNoRows) { // swept meanwhile
		return false, 0, fmt.Errorf("noting the use of a turn: %w", err)
	}
	return false, unseen, nil
}

// Settle implements [sessionstate.Turns]. It settles even when ctx is over.
func (t *Turns) Settle(ctx context.Context, key string, o sessionstate.Outcome) error {
	if key == "" {
		return sessionstate.ErrNoKey
	}
	if o > sessionstate.Unseen {
		return fmt.Errorf("outcome %d is not known: use Open, Seen or Unseen", o)
	}
	_, err := t.exec(context.WithoutCancel(ctx), `INSERT INTO turns (key, used, deferred, closed) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (key) DO UPDATE SET used = ?2, held_until = 0, deferred = deferred + ?3,
			closed = closed OR ?4`,
		digest(key), t.now().UnixNano(), o == sessionstate.Unseen, o == sessionstate.Seen)
	if err != nil {
		return fmt.Errorf("settling the turn: %w", err)
	}
	return nil
}

// Sweep implements [sessionstate.Turns]. It also forgets the keys that are more than
// [sessionstate.DefaultMax], those longest unused first.
func (t *Turns) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	now := t.now()
	n, err := t.exec(ctx, `DELETE FROM turns WHERE NOT `+held+` AND (used <= ?3
		OR key IN (SELECT key FROM turns ORDER BY used DESC LIMIT -1 OFFSET ?4))`,
		now.UnixNano(), int64(sessionstate.Lease), now.Add(-idle).UnixNano(), t.max)
	if err != nil {
		return 0, fmt.Errorf("forgetting old turns: %w", err)
	}
	return n, nil
}

// exec runs one statement, and says how many rows it changed.
func (t *Turns) exec(ctx context.Context, query string, args ...any) (int, error) {
	result, err := t.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// digest returns the form of a key in the file.
func digest(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

var _ sessionstate.Turns = (*Turns)(nil)
