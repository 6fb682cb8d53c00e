package turnstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// Turns keeps the turns of a tenant.
type Turns struct {
	store  *Store
	tenant string
}

// in runs f in a transaction that need not be on the disk when it is over (S5).
func (t *Turns) in(ctx context.Context, f func(tx *database.Tx, now int64) error) error {
	return t.store.db.In(ctx, database.Scope{Tenant: t.tenant, Relaxed: true}, func(tx *database.Tx) error {
		now := tx.Now()
		if t.store.now != nil {
			now = t.store.now()
		}
		return f(tx, now.UnixNano())
	})
}

// held is the condition that a turn is held at ?1. A turn that would be held for longer
// than twice the lease, ?2, was taken before the clock was set back, and is free. One
// lease would be too little: a process that waits for the lock has read the clock before
// the process that it waits for.
const held = `(turns.held_until > ?1 AND turns.held_until <= ?1 + 2 * ?2)`

// Take implements [sessionstate.Turns].
func (t *Turns) Take(ctx context.Context, key string) (mine bool, unseen int, err error) {
	if key == "" {
		return false, 0, sessionstate.ErrNoKey
	}
	err = t.in(ctx, func(tx *database.Tx, now int64) error {
		mine, unseen = false, 0
		taken := tx.Row(`INSERT INTO turns (tenant, key, used, held_until) VALUES (?4, ?3, ?1, ?1 + ?2)
			ON CONFLICT (tenant, key) DO UPDATE SET used = ?1, held_until = ?1 + ?2 WHERE turns.closed = 0 AND NOT `+held+`
			RETURNING deferred`,
			now, int64(sessionstate.Lease), digest(key), t.tenant)
		switch err := taken.Scan(&unseen); {
		case err == nil:
			mine = true
			return nil
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		used := tx.Row(`UPDATE turns SET used = ?1 WHERE tenant = ?3 AND key = ?2 RETURNING deferred`, now, digest(key), t.tenant)
		if err := used.Scan(&unseen); !errors.Is(err, sql.ErrNoRows) { // it may be swept meanwhile
			return err
		}
		return nil
	})
	if err != nil {
		return false, 0, fmt.Errorf("taking the turn: %w", err)
	}
	return mine, unseen, nil
}

// Settle implements [sessionstate.Turns]. It settles even when ctx is over.
func (t *Turns) Settle(ctx context.Context, key string, o sessionstate.Outcome) error {
	if key == "" {
		return sessionstate.ErrNoKey
	}
	if o > sessionstate.Unseen {
		return fmt.Errorf("outcome %d is not known: use Open, Seen or Unseen", o)
	}
	var deferred, closed int64
	switch o {
	case sessionstate.Seen:
		closed = 1
	case sessionstate.Unseen:
		deferred = 1
	}
	err := t.in(context.WithoutCancel(ctx), func(tx *database.Tx, now int64) error {
		_, err := tx.Exec(`INSERT INTO turns (tenant, key, used, deferred, closed) VALUES (?5, ?1, ?2, ?3, ?4)
			ON CONFLICT (tenant, key) DO UPDATE SET used = ?2, held_until = 0, deferred = turns.deferred + ?3,
				closed = CASE WHEN ?4 = 1 THEN 1 ELSE turns.closed END`,
			digest(key), now, deferred, closed, t.tenant)
		return err
	})
	if err != nil {
		return fmt.Errorf("settling the turn: %w", err)
	}
	return nil
}

// Sweep implements [sessionstate.Turns]. In a file it also forgets the keys of the tenant that are
// more than [sessionstate.DefaultMax], those longest unused first. A server has the sessions of
// many machines, which may be more at once, and is swept by each of them.
func (t *Turns) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	var n int64
	err := t.in(ctx, func(tx *database.Tx, now int64) (err error) {
		if t.store.max == 0 {
			n, err = tx.Exec(`DELETE FROM turns WHERE tenant = ?4 AND used <= ?3 AND NOT `+held, now, int64(sessionstate.Lease), now-int64(idle), t.tenant)
			return err
		}
		n, err = tx.Exec(`DELETE FROM turns WHERE tenant = ?5 AND NOT `+held+` AND (used <= ?3
			OR used < (SELECT min(kept.used) FROM (SELECT used FROM turns WHERE tenant = ?5 ORDER BY used DESC LIMIT ?4) AS kept))`,
			now, int64(sessionstate.Lease), now-int64(idle), t.store.max, t.tenant)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forgetting old turns: %w", err)
	}
	return int(n), nil
}

// digest returns the form of a key in the database.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

var _ sessionstate.Turns = (*Turns)(nil)
