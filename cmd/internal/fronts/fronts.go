// Package fronts stores the sessions of attache serve in a database that several fronts share,
// so that a session continues in another front when its own has ended.
//
// Each front has a row with a lease, which it renews every [RenewEvery]. A session belongs to
// the front that opened or took it. Another front may take it after that front has released it, or
// after the lease has expired; on the same machine also after the process has ended, which releases
// the lock on a file. Every change is one transaction, so only one of many fronts gets a
// session, and a front that is killed completes a change or does not make it.
//
// The database has the SHA-256 of a session's id, not the id.
package fronts

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/filelock"
)

const (
	// lease is how long a front counts as alive after its last renewal.
	lease = 20 * time.Second
	// RenewEvery is how often a front renews its lease.
	RenewEvery = 5 * time.Second
	// sweepEvery is the number of renewals from one sweep to the next.
	sweepEvery = 12
)

// tenant is the tenant of all rows: session ids are random, so tenants need no separate rows.
const tenant = ""

// lockWait is how long a statement waits while another process locks the file.
const lockWait = 5 * time.Second

//go:embed schema/*.sql
var files embed.FS

// Schema returns the tables of fronts and their sessions.
func Schema() database.Schema { return database.Schema{Name: "fronts", Files: files} }

// Options are the options of [Open].
type Options struct {
	// Server has the tables if several machines share them; nil for a file.
	Server *database.Server
	// Path is the file. If it does not exist, Open creates it.
	Path string
	// Locks is the directory with a lock file for each front of this machine; "" for none.
	Locks string
	// Address is the address at which the balancer reaches this front.
	Address string
	// Service names the service of this front. Fronts of another service receive none of its
	// requests.
	Service string
	// Idle is how long a session without a front is stored.
	Idle time.Duration
	// Now is the clock; nil for the clock of the database, which fronts share.
	Now func() time.Time
}

// A Front is the registration of this process with the fronts that share a database. Its methods
// may be called from any goroutine.
type Front struct {
	o    Options
	db   *database.DB
	id   string
	host string
	lock *flock.Flock // nil for none

	at atomic.Pointer[time.Time] // when the last renewal began that succeeded; nil before the first

	renewing sync.Mutex // held during a renewal
	renewed  int        // number of renewals that Renew has made
	lapsed   bool       // hold has renewed a lease that was over, and Renew has not reported that
}

// Open opens the database and takes the lock of this front. The first Renew creates the front's row.
// An error means that the file cannot be used, and names it.
func Open(ctx context.Context, o Options) (*Front, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	f := &Front{o: o, id: rand.Text(), host: host}
	if err := f.takeLock(); err != nil {
		return nil, err
	}
	f.db, err = database.Open(ctx, o.Server, database.FileOptions{Path: o.Path, Wait: lockWait, Schema: Schema(), LocalOnly: true})
	if err != nil {
		f.unlock()
		return nil, err
	}
	f.db.Clock = o.Now
	return f, nil
}

// takeLock locks a file, which shows other fronts of this machine that the process is alive.
func (f *Front) takeLock() error {
	if f.o.Locks == "" {
		return nil
	}
	if err := os.MkdirAll(f.o.Locks, 0o700); err != nil {
		return err
	}
	f.lock = flock.New(f.lockPath(f.id), flock.SetPermissions(0o600))
	held, err := f.lock.TryLock()
	if err == nil && !held {
		err = errors.New(f.lock.Path() + " is locked by another process")
	}
	return err
}

// Close releases all sessions for other fronts.
func (f *Front) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	scope := database.Scope{Tenant: tenant, Urgent: true}
	err := f.inBatches(ctx, scope, func(t *database.Tx) (int64, error) { return release(t, f.id, t.Now().UnixNano(), math.MaxInt64) })
	if err == nil {
		_, err = f.db.Exec(ctx, scope, `DELETE FROM fronts WHERE tenant = ?1 AND id = ?2 AND `+hasNone, tenant, f.id)
	}
	f.unlock()
	return errors.Join(err, f.db.Close())
}

// Renew renews the lease. It reports whether the lease was no longer valid: other fronts may then have
// taken sessions of this one. From time to time it also removes the rows of ended fronts.
func (f *Front) Renew(ctx context.Context) (lapsed bool, err error) {
	f.renewing.Lock()
	if lapsed, err = f.renewLocked(ctx); err == nil {
		lapsed, f.lapsed = lapsed || f.lapsed, false
		f.renewed++
	}
	sweeps := err == nil && f.renewed%sweepEvery == 1
	f.renewing.Unlock()
	if sweeps {
		_ = f.sweep(ctx) // if it fails, another front sweeps, or this one later
	}
	return lapsed, err
}

// hold renews the lease if it is over. Otherwise other fronts could take each new session of this front at once.
// While the lease is valid, hold does not wait for a renewal.
func (f *Front) hold(ctx context.Context) error {
	if f.holds() {
		return nil
	}
	f.renewing.Lock()
	defer f.renewing.Unlock()
	if f.holds() {
		return nil
	}
	first := f.at.Load() == nil
	lapsed, err := f.renewLocked(ctx)
	f.lapsed = f.lapsed || lapsed && !first
	return err
}

// holds reports whether the last renewal that succeeded is recent enough.
func (f *Front) holds() bool {
	at := f.at.Load()
	return at != nil && time.Since(*at) < lease
}

func (f *Front) renewLocked(ctx context.Context) (lapsed bool, err error) {
	began := time.Now()
	err = f.db.In(ctx, database.Scope{Tenant: tenant, Relaxed: true}, func(t *database.Tx) error {
		now := t.Now().UnixNano()
		n, err := t.Exec(`UPDATE fronts SET until = ?3 WHERE tenant = ?1 AND id = ?2 AND until > ?4 AND until <= ?5`,
			tenant, f.id, now+int64(lease), now, now+longestLease)
		if lapsed = n == 0; lapsed && err == nil {
			_, err = t.Exec(`INSERT INTO fronts (tenant, id, host, address, service, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
				ON CONFLICT (tenant, id) DO UPDATE SET until = ?6`, tenant, f.id, f.host, f.o.Address, f.o.Service, now+int64(lease))
		}
		return err
	})
	if err == nil {
		f.at.Store(&began)
	}
	return lapsed, err
}

// Drain stops other fronts from sending requests to this one.
func (f *Front) Drain(ctx context.Context) error {
	_, err := f.db.Exec(ctx, database.Scope{Tenant: tenant, Relaxed: true}, `UPDATE fronts SET ending = 1 WHERE tenant = ?1 AND id = ?2`, tenant, f.id)
	return err
}

// A statement changes at most batchSize sessions, because a front may have had thousands of sessions: see
// [database.Timeouts]. Their searches have the order of an index. Without it, PostgreSQL reads the whole table if its
// statistics promise many rows.
const batchSize = 200

// inBatches runs change, which changes at most batchSize rows and returns their number, until no rows are left or ctx
// is done. It can change fewer before that: another front may have changed some of the rows that it selected.
func (f *Front) inBatches(ctx context.Context, s database.Scope, change func(*database.Tx) (int64, error)) error {
	for n := int64(batchSize); n > 0; {
		err := f.db.In(ctx, s, func(t *database.Tx) (err error) {
			n, err = change(t)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// release releases sessions of a front for others, unless its lease was valid at a time. The statement checks the
// front of a session twice, because another front may take the session meanwhile.
func release(t *database.Tx, front string, leftAt, ended int64) (int64, error) {
	return t.Exec(releaseSome, tenant, front, leftAt, ended, batchSize)
}

const releaseSome = `UPDATE front_sessions SET front = '', left_at = ?3 WHERE tenant = ?1 AND front = ?2
	AND (server, id) IN (SELECT server, id FROM front_sessions WHERE tenant = ?1 AND front = ?2 ORDER BY left_at LIMIT ?5)
	AND NOT EXISTS (SELECT 1 FROM fronts WHERE tenant = ?1 AND id = ?2 AND until > ?4)`

// abandoned selects the fronts that have sessions and whose lease ended before ?2, with the time at which it ended.
// It finds the fronts one by one in the index, without reading all sessions.
const abandoned = `WITH RECURSIVE owner (id) AS (
		SELECT min(front) FROM front_sessions WHERE tenant = ?1 AND front > ''
		UNION ALL SELECT (SELECT min(s.front) FROM front_sessions s WHERE s.tenant = ?1 AND s.front > owner.id)
			FROM owner WHERE owner.id IS NOT NULL)
	SELECT owner.id, '', '', coalesce(f.until, ?2) FROM owner LEFT JOIN fronts f ON f.tenant = ?1 AND f.id = owner.id
	WHERE owner.id IS NOT NULL AND (f.until IS NULL OR f.until <= ?2)`

// sweep releases the sessions of fronts whose lease expired a while ago, and deletes these fronts, and the sessions
// that were without a front for too long. It does this apart from the renewal, which must not fail with it, and ends
// before the next one is due.
func (f *Front) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RenewEvery)
	defer cancel()
	scope := database.Scope{Tenant: tenant, Relaxed: true}
	var now, ended int64
	var owners, gone []peer
	err := f.db.In(ctx, scope, func(t *database.Tx) (err error) {
		now = t.Now().UnixNano()
		ended = now - int64(lease)
		owners, err = peers(t, abandoned, tenant, ended)
		return err
	})
	for _, p := range owners {
		if err == nil {
			err = f.inBatches(ctx, scope, func(t *database.Tx) (int64, error) { return release(t, p.id, p.until, ended) })
		}
	}
	if err == nil {
		err = f.inBatches(ctx, scope, func(t *database.Tx) (int64, error) {
			return t.Exec(deleteIdle, tenant, now-int64(f.o.Idle), batchSize)
		})
	}
	if err == nil {
		err = f.db.In(ctx, scope, func(t *database.Tx) (err error) {
			gone, err = peers(t, deleteFronts, tenant, ended)
			return err
		})
	}
	for _, p := range gone {
		if err == nil && f.processGone(p) {
			_ = os.Remove(f.lockPath(p.id))
		}
	}
	return err
}

// deleteIdle deletes sessions that were left at ?2 or before. A front may take one while the statement waits for its
// row.
const deleteIdle = `DELETE FROM front_sessions WHERE tenant = ?1 AND front = '' AND left_at <= ?2
	AND (server, id) IN (SELECT server, id FROM front_sessions
		WHERE tenant = ?1 AND front = '' AND left_at <= ?2 ORDER BY left_at LIMIT ?3)`

// hasNone is the condition that a front has no sessions. Without its row, no front would take its sessions.
const hasNone = `NOT EXISTS (SELECT 1 FROM front_sessions s WHERE s.tenant = ?1 AND s.front = fronts.id)`

// deleteFronts deletes the fronts without sessions whose lease ended before ?2.
const deleteFronts = `DELETE FROM fronts WHERE tenant = ?1 AND until <= ?2 AND ` + hasNone + ` RETURNING id, host, address, until`

// lockPath returns the path of the lock of a front. Other programs may write to the database, so an id from there
// must not lead to another directory.
func (f *Front) lockPath(id string) string {
	return filepath.Join(f.o.Locks, filepath.Base(id)+".lock")
}

func (f *Front) unlock() {
	if f.lock != nil {
		filelock.Discard(f.lock)
	}
}

// A peer is the row of another front.
type peer struct {
	id, host, address string
	until             int64
	known             bool // it has a row
}

// peers returns the fronts that a query selects.
func peers(t *database.Tx, query string, args ...any) ([]peer, error) {
	return database.Collect(t, func(row database.Rows) (peer, error) {
		p := peer{known: true}
		err := row.Scan(&p.id, &p.host, &p.address, &p.until)
		return p, err
	}, query, args...)
}

// longestLease is the longest time, in nanoseconds, that a valid lease can have left. If a lease has more
// time left, the clock was set back after the lease was renewed, and the lease counts as expired.
const longestLease = 2 * int64(lease)

// alive reports whether a front has a valid lease and its process is running.
func (f *Front) alive(p peer, now int64) bool {
	return p.known && p.until > now && p.until <= now+longestLease && !f.processGone(p)
}

// processGone reports whether the process of a front of this machine has ended: its lock is free.
// For fronts of other machines only the lease counts.
func (f *Front) processGone(p peer) bool {
	if f.lock == nil || p.host != f.host || p.id == f.id {
		return false
	}
	l := flock.New(f.lockPath(p.id), flock.SetFlag(os.O_RDONLY))
	free, err := l.TryRLock()
	if free {
		_ = l.Unlock()
	}
	return free && err == nil
}
