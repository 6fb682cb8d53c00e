// Package ratestore stores the token buckets of rates in a database that many processes share.
//
// [Store] implements [sessionstate.Lender]: a process borrows a few tokens and spends them
// without asking again. In any period the store lends at most the tokens that the bucket holds
// and gains, so all processes together exceed the limit at most by the tokens that they hold at
// its beginning.
//
// A row stores the time at which its bucket is full again, by the clock of the database. A full
// bucket needs no row. The tokens of a process that died count as spent.
package ratestore

import (
	"context"
	"embed"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the table of buckets.
func Schema() database.Schema { return database.Schema{Name: "rates", Files: files} }

// A Store lends tokens. It is safe for use by several processes and goroutines.
type Store struct{ db *database.DB }

// New returns the Store in db, which must be opened with [Schema].
func New(db *database.DB) *Store { return &Store{db: db} }

// One of sweepEvery loans removes up to sweepBatch rows of full buckets.
const sweepEvery, sweepBatch = 100, 200

// Lend implements [sessionstate.Lender].
func (s *Store) Lend(ctx context.Context, b sessionstate.Bucket, d sessionstate.Demand) (loan sessionstate.Loan, err error) {
	err = s.db.In(ctx, database.Scope{Tenant: b.Tenant, Relaxed: true}, func(tx *database.Tx) (err error) {
		loan, err = lend(tx, b, d, tx.Now())
		return err
	})
	if err != nil {
		return sessionstate.Loan{}, fmt.Errorf("asking for tokens of a rate: %w", err)
	}
	if rand.N(sweepEvery) == 0 {
		_ = s.sweep(ctx) // if it fails, another loan sweeps
	}
	return loan, nil
}

// lend locks and reads the row of a bucket, and writes it back.
func lend(tx *database.Tx, b sessionstate.Bucket, d sessionstate.Demand, now time.Time) (sessionstate.Loan, error) {
	var r row
	err := tx.Row(`INSERT INTO rate_buckets (tenant, bucket, full_at, minute, processes, earlier) VALUES (?1, ?2, 0, 0, 0, 0)
		ON CONFLICT (tenant, bucket) DO UPDATE SET minute = rate_buckets.minute
		RETURNING full_at, minute, processes, earlier`, b.Tenant, b.Name).Scan(&r.fullAt, &r.minute, &r.processes, &r.earlier)
	if err != nil {
		return sessionstate.Loan{}, err
	}
	loan := r.lend(b, d, now)
	_, err = tx.Exec(`UPDATE rate_buckets SET full_at = ?3, minute = ?4, processes = ?5, earlier = ?6 WHERE tenant = ?1 AND bucket = ?2`,
		b.Tenant, b.Name, r.fullAt, r.minute, r.processes, r.earlier)
	return loan, err
}

// A row is the state of a bucket: see schema/1.sql.
type row struct{ fullAt, minute, processes, earlier int64 }

// maxFillTime bounds the time in which a bucket fills, so that no computation overflows.
const maxFillTime = 100 * 365 * 24 * time.Hour

// longestWait is about how long a transaction of a server may wait for the row: see
// [database.DefaultTimeouts].
const longestWait = 2 * time.Second

// lend removes tokens from the bucket. If the clock was set back, the bucket is at worst empty. While
// this transaction waited for the row, one that began later may have emptied the bucket: then it
// lends nothing.
func (r *row) lend(b sessionstate.Bucket, d sessionstate.Demand, now time.Time) sessionstate.Loan {
	at := now.UnixNano()
	every := min(max(int64(b.Every), 1), int64(maxFillTime))
	burst := min(max(int64(b.Burst), 1), int64(maxFillTime)/every)
	back := min(max(int64(d.Back), 0), burst)
	latest := at + burst*every // fullAt of an empty bucket
	if r.fullAt > latest+int64(longestWait) {
		r.fullAt = latest
	}
	fullAt := max(max(r.fullAt, at)-back*every, at)
	tokens := max(min(int64(d.Want), (latest-fullAt)/every), 0)
	r.fullAt = fullAt + tokens*every
	r.count(d, now.Unix()/60)
	return sessionstate.Loan{
		Tokens: int(tokens), Full: time.Duration(r.fullAt - at),
		Processes: int(max(r.processes, r.earlier)), Counted: r.minute,
	}
}

// count counts each process that borrows once per minute.
func (r *row) count(d sessionstate.Demand, minute int64) {
	if r.minute != minute {
		if r.earlier = 0; r.minute == minute-1 {
			r.earlier = r.processes
		}
		r.minute, r.processes = minute, 0
	}
	if d.Counted != minute {
		r.processes++
	}
}

// sweep removes rows of buckets that have been full for two minutes, after which their counts of
// processes are out of date. It checks the condition twice, because a row may be used while it
// waits for the row. The search has the order of an index: PostgreSQL would read the whole table if its
// statistics promise many rows.
func (s *Store) sweep(ctx context.Context) error {
	return s.db.In(ctx, database.Scope{AllTenants: true, Relaxed: true}, func(tx *database.Tx) error {
		_, err := tx.Exec(deleteFull, tx.Now().Add(-2*time.Minute).UnixNano(), sweepBatch)
		return err
	})
}

const deleteFull = `DELETE FROM rate_buckets WHERE full_at <= ?1 AND (tenant, bucket) IN
	(SELECT tenant, bucket FROM rate_buckets WHERE full_at <= ?1 ORDER BY full_at LIMIT ?2)`

var _ sessionstate.Lender = (*Store)(nil)
