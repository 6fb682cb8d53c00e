// Package fronts keeps the sessions of attache serve in a database that several fronts share,
// so that a session goes on in another front when its own has ended.
//
// Each front has a row, whose lease it renews every [RenewEvery]. A session belongs to
// the front that opened or took it. Another front may take it when that front has left it, or
// when its lease is over; on the same machine also when its process is gone, which shows in a
// file that it has locked. Every change is one transaction, so of many fronts one gets a
// session, and a front that is killed leaves all of a change or nothing.
//
// The database has the SHA-256 of a session's id, not the id.
package fronts

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/filelock"
)

const (
	// Lease is how long a front counts as alive that has stopped renewing.
	Lease = 20 * time.Second
	// RenewEvery is how often a front renews its lease.
	RenewEvery = 5 * time.Second
	// sweepEvery is how many renewals there are between two sweeps.
	sweepEvery = 12
)

// Options are the options of [Open].
type Options struct {
	// Server has the tables, where several machines share them; nil for a file.
	Server *database.Server
	// Path is the file. If it does not exist, Open creates it.
	Path string
	// Locks is the directory with a file of each front of this machine; "" for none.
	Locks string
	// Address is where the balancer reaches this front.
	Address string
	// Service names what this front serves: fronts of another service take none of its
	// requests.
	Service string
	// Idle is how long a session is kept that no front has.
	Idle time.Duration
	// Now is the clock; nil stands for the one of the database, which fronts share.
	Now func() time.Time
}

// A Front is this process among those that share a database. Its methods may be called from
// any goroutine.
type Front struct {
	o       Options
	db      *database.DB
	id      string
	host    string
	lock    *flock.Flock // nil for none
	renewed int          // how often
}

// Open enters this process among the fronts. Its row is there when Renew was called. An error
// means that the file cannot be used, and names it.
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

// takeLock locks a file, which shows other fronts of this machine that the process lives.
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

// Close leaves all sessions to other fronts.
func (f *Front) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	err := f.inScope(ctx, database.Scope{Tenant: tenant, Urgent: true}, func(t *tx) error {
		_, err := t.Exec(`UPDATE front_sessions SET front = '', left_at = ?3 WHERE tenant = ?1 AND front = ?2`, tenant, f.id, t.now)
		if err == nil {
			_, err = t.Exec(`DELETE FROM fronts WHERE tenant = ?1 AND id = ?2`, tenant, f.id)
		}
		return err
	})
	f.unlock()
	return errors.Join(err, f.db.Close())
}

// Renew renews the lease. It reports whether the lease was over, so that other fronts may have
// taken sessions of this one. Once in a while it also clears up behind fronts that are gone.
func (f *Front) Renew(ctx context.Context) (lapsed bool, err error) {
	var gone []peer
	f.renewed++
	err = f.in(ctx, true, func(t *tx) error {
		now := t.now
		n, err := t.Exec(`UPDATE fronts SET until = ?3 WHERE tenant = ?1 AND id = ?2 AND until > ?4`, tenant, f.id, now+int64(Lease), now)
		if lapsed = n == 0; lapsed && err == nil {
			_, err = t.Exec(`INSERT INTO fronts (tenant, id, host, address, service, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
				ON CONFLICT (tenant, id) DO UPDATE SET until = ?6`, tenant, f.id, f.host, f.o.Address, f.o.Service, now+int64(Lease))
		}
		if gone = nil; err == nil && f.renewed%sweepEvery == 1 {
			gone, err = t.sweep(now, f.o.Idle)
		}
		return err
	})
	for _, p := range gone {
		if f.processGone(p) {
			_ = os.Remove(f.lockPath(p.id))
		}
	}
	return lapsed, err
}

// Drain has other fronts send no more requests here.
func (f *Front) Drain(ctx context.Context) error {
	return f.in(ctx, true, func(t *tx) error {
		_, err := t.Exec(`UPDATE fronts SET ending = 1 WHERE tenant = ?1 AND id = ?2`, tenant, f.id)
		return err
	})
}

// sweep forgets fronts whose lease has been over for a while, which it returns, and sessions
// that nobody has come back for.
func (t *tx) sweep(now int64, idle time.Duration) (fronts []peer, err error) {
	gone := now - int64(Lease)
	fronts, err = t.peers(`SELECT id, host, address, until FROM fronts WHERE tenant = ?1 AND until <= ?2`, tenant, gone)
	if err != nil {
		return nil, err
	}
	_, err = t.Exec(`UPDATE front_sessions SET front = '',
		left_at = coalesce((SELECT f.until FROM fronts f WHERE f.tenant = ?1 AND f.id = front_sessions.front), ?2)
		WHERE tenant = ?1 AND front <> ''
		AND NOT EXISTS (SELECT 1 FROM fronts f WHERE f.tenant = ?1 AND f.id = front_sessions.front AND f.until > ?2)`, tenant, gone)
	if err == nil {
		_, err = t.Exec(`DELETE FROM fronts WHERE tenant = ?1 AND until <= ?2`, tenant, gone)
	}
	if err == nil {
		_, err = t.Exec(`DELETE FROM front_sessions WHERE tenant = ?1 AND front = '' AND left_at <= ?2`, tenant, now-int64(idle))
	}
	return fronts, err
}

func (f *Front) lockPath(id string) string { return filepath.Join(f.o.Locks, id+".lock") }

func (f *Front) unlock() {
	if f.lock != nil {
		filelock.Discard(f.lock)
	}
}

// A peer is another front, as its row has it.
type peer struct {
	id, host, address string
	until             int64
	known             bool // it has a row
}

// alive reports whether a front is alive at a time. A lease of more than twice its length was
// taken before the clock was set back, and is over.
func (f *Front) alive(p peer, now int64) bool {
	return p.known && p.until > now && p.until <= now+2*int64(Lease) && !f.processGone(p)
}

// processGone reports whether the process of a front of this machine is gone: it has left the
// lock on its file. Whether others are gone their leases tell.
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
