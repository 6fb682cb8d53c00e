// Package turnstore stores turns in a database that many processes share, so that the servers
// of one client, each behind its own attache, brief the model only once.
//
// [Turns] implements [sessionstate.Turns] in a SQLite file or in PostgreSQL. Each change is one
// transaction, so a process that is killed leaves no partial change and no lock. The turn of a
// process that died is free again after [sessionstate.Lease].
//
// The database stores the SHA-256 of each key, not the key: it is the id of a session, which
// may be a secret elsewhere.
//
// The lease and the idle time use the wall clock that the processes share: that of the
// machine, or of the server. If it is set back, a turn stays held for at most two leases.
//
// The package repairs nothing. If a file is damaged, of a newer version or locked for too long,
// it returns an error, and the caller continues with [sessionstate.MemoryTurns].
package turnstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the table of turns.
func Schema() database.Schema { return database.Schema{Name: "turns", Files: files} }

// DefaultWait is the default of [Options].Wait. A statement takes well under a millisecond, and
// a new file a few synchronous writes.
const DefaultWait = time.Second

// Options are the options of [Open].
type Options struct {
	// Server is the server with the table, if several machines share it; nil for a file.
	Server *database.Server
	// Path is the path of the file. If it does not exist, Open creates it and its directory,
	// accessible only to their owner.
	Path string
	// Wait is how long to wait while another process has locked the file; 0 stands for
	// [DefaultWait].
	Wait time.Duration
	// Now is the clock; nil stands for that of the database.
	Now func() time.Time
}

// A DB stores the turns of all tenants. Several processes and goroutines may use a database at
// the same time, but each process must open it only once.
type DB struct {
	db  *database.DB
	max int // maximum number of keys per tenant after Sweep; 0 for no limit
}

// Open opens the database of o. Many processes may create a file at once. An error means that
// the file cannot be used, and names it. Open does not use the server yet.
func Open(ctx context.Context, o Options) (*DB, error) {
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	db, err := database.Open(ctx, o.Server, database.FileOptions{Path: o.Path, Wait: o.Wait, Schema: Schema()})
	if err != nil {
		return nil, err
	}
	db.Clock = o.Now
	d := &DB{db: db}
	if !db.Shared() {
		d.max = sessionstate.DefaultMax
	}
	return d, nil
}

// Close closes the file. A process that ends without Close loses nothing.
func (d *DB) Close() error { return d.db.Close() }

// Of returns the turns of a tenant, "" if there is only one.
func (d *DB) Of(tenant string) *Turns { return &Turns{d, tenant} }

// Turns gives access to the turns of a tenant.
type Turns struct {
	db     *DB
	tenant string
}

// in runs f in a transaction that need not be on the disk when in returns.
func (t *Turns) in(ctx context.Context, f func(tx *database.Tx, now int64) error) error {
	return t.db.db.In(ctx, database.Scope{Tenant: t.tenant, Relaxed: true}, func(tx *database.Tx) error {
		return f(tx, tx.Now().UnixNano())
	})
}

// isHeld is the SQL condition that a turn is held at time ?1. If the turn ends more than two
// leases (?2) after that, it was taken before the clock was set back, and is free. A limit of
// one lease would be too short: while a process waits for the lock, another one may take the
// turn with a later time.
const isHeld = `(turns.held_until > ?1 AND turns.held_until <= ?1 + 2 * ?2)`

// Take implements [sessionstate.Turns].
func (t *Turns) Take(ctx context.Context, key string, idle time.Duration) (mine bool, unseen int, err error) {
	if key == "" {
		return false, 0, sessionstate.ErrNoKey
	}
	err = t.in(ctx, func(tx *database.Tx, now int64) error {
		mine, unseen = false, 0
		before := int64(math.MinInt64)
		if idle > 0 {
			before = now - int64(idle)
		}
		taken := tx.Row(`INSERT INTO turns (tenant, key, used, held_until) VALUES (?4, ?3, ?1, ?1 + ?2)
			ON CONFLICT (tenant, key) DO UPDATE SET used = ?1, held_until = ?1 + ?2, closed = 0,
				deferred = CASE WHEN turns.used <= ?5 THEN 0 ELSE turns.deferred END
			WHERE (turns.closed = 0 OR turns.used <= ?5) AND NOT `+isHeld+`
			RETURNING deferred`,
			now, int64(sessionstate.Lease), digest(key), t.tenant, before)
		switch err := taken.Scan(&unseen); {
		case err == nil:
			mine = true
			return nil
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		used := tx.Row(`UPDATE turns SET used = ?1 WHERE tenant = ?3 AND key = ?2 RETURNING deferred`, now, digest(key), t.tenant)
		if err := used.Scan(&unseen); !errors.Is(err, sql.ErrNoRows) { // the row may have been swept
			return err
		}
		return nil
	})
	if err != nil {
		return false, 0, fmt.Errorf("taking the turn: %w", err)
	}
	return mine, unseen, nil
}

// Settle implements [sessionstate.Turns]. It settles even if ctx is done.
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

// On a server, one transaction of a sweep removes at most sweepBatch turns, and a sweep has at
// most sweepRounds transactions. Each has to be short: see [database.Timeouts]. A process sweeps once a
// minute, so a sweep must remove more turns than clients take in a minute.
const sweepBatch, sweepRounds = 200, 100

// Sweep implements [sessionstate.Turns]. In a file it also removes the least recently used keys
// of the tenant if there are more than [sessionstate.DefaultMax]. A server has no such limit,
// because it has the sessions of many machines. All of them sweep it, so each removes only a
// bounded number of turns.
func (t *Turns) Sweep(ctx context.Context, idle time.Duration) (total int, err error) {
	sweep, rounds := t.sweepFile, 1
	if t.db.max == 0 {
		sweep, rounds = t.sweepServer, sweepRounds
	}
	n := int64(sweepBatch)
	for round := 0; round < rounds && n == sweepBatch; round++ {
		err := t.in(ctx, func(tx *database.Tx, now int64) (err error) {
			n, err = sweep(tx, now, now-int64(idle))
			return err
		})
		if err != nil {
			return total, fmt.Errorf("forgetting old turns: %w", err)
		}
		total += int(n)
	}
	return total, nil
}

func (t *Turns) sweepFile(tx *database.Tx, now, before int64) (int64, error) {
	return tx.Exec(`DELETE FROM turns WHERE tenant = ?5 AND NOT `+isHeld+` AND (used <= ?3
		OR used < (SELECT min(kept.used) FROM (SELECT used FROM turns WHERE tenant = ?5 ORDER BY used DESC LIMIT ?4) AS kept))`,
		now, int64(sessionstate.Lease), before, t.db.max, t.tenant)
}

// sweepServer checks its condition twice, because a turn may be taken while it waits for the row.
// The keys are an array because without statistics of the table PostgreSQL would join them with it, and
// compare each row with each key. The search has the order of an index because PostgreSQL would read the whole
// table if its statistics promise many rows.
func (t *Turns) sweepServer(tx *database.Tx, now, before int64) (int64, error) {
	return tx.Exec(deleteOldest, now, int64(sessionstate.Lease), before, t.tenant, sweepBatch)
}

const (
	isDue        = `tenant = ?4 AND used <= ?3 AND NOT ` + isHeld
	deleteOldest = `DELETE FROM turns WHERE ` + isDue + ` AND key = ANY (ARRAY (SELECT key FROM turns WHERE ` + isDue + ` ORDER BY used LIMIT ?5))`
)

// digest returns the form of a key in the database.
func digest(key string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
}

var _ sessionstate.Turns = (*Turns)(nil)
