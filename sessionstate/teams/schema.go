package teams

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the tables of the registry and the mailboxes.
func Schema() database.Schema { return database.Schema{Name: "teams", Files: files} }

// The times of the store.
const (
	// Lease is how long a process or a run counts as alive after the last renewal.
	Lease = 90 * time.Second
	// RenewEvery is how often the holder of a lease renews it.
	RenewEvery = 30 * time.Second
	// InboxLease is how long a taker may hold messages before it settles them.
	InboxLease = 10 * time.Second
	// Expiry is how long a message may be queued.
	Expiry = 24 * time.Hour
	// Retention is how long settled messages and ended sessions are stored.
	Retention = 7 * 24 * time.Hour
	// BusyFor is how long a session counts as working after a call.
	BusyFor = time.Minute
	// ParentGone is how long a session must be gone until its children treat it as ended.
	ParentGone = 10 * time.Minute
)

// Options are the options of [Open].
type Options struct {
	// Server is the server with the tables, if several machines share them; nil for a file.
	Server *database.Server
	// Path is the path of the file. If it does not exist, Open creates it and its directory,
	// accessible only to their owner.
	Path string
	// Now is the clock; nil stands for that of the database.
	Now func() time.Time
}

// A Store has the registry of sessions and their mailboxes. Several processes and goroutines may
// use a database at the same time, but each process must open it only once.
type Store struct {
	db      *database.DB
	address string
	wrote   atomic.Int64 // number of messages that this process has put into mailboxes
}

// lockWait is how long a method waits while another process has locked the file.
const lockWait = 5 * time.Second

// Open opens the database of o. An error means that the file cannot be used, and names it. Open
// does not use the server yet.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := database.Open(ctx, o.Server, database.FileOptions{Path: o.Path, Wait: lockWait, Schema: Schema(), LocalOnly: true})
	if err != nil {
		return nil, err
	}
	db.Clock = o.Now
	s := &Store{db: db, address: o.Path}
	if o.Server != nil {
		s.address = o.Server.Address()
	}
	return s, nil
}

// Address returns a description of the database without secrets.
func (s *Store) Address() string { return s.address }

// Close closes the file. A process that ends without Close loses nothing.
func (s *Store) Close() error { return s.db.Close() }

// A Version changes when a process has changed the database.
type Version struct{ others, own int64 }

// Version returns the version of the database. For a file it takes some microseconds. It does
// not use the server, whose version changes once per every.
func (s *Store) Version(ctx context.Context, every time.Duration) (v Version, err error) {
	v.own = s.wrote.Load()
	v.others, err = s.db.Version(ctx, every)
	return v, err
}

// in runs f in a transaction of a tenant that is on the disk when in returns.
func (s *Store) in(ctx context.Context, tenant string, f func(tx *tx) error) error {
	return s.transact(ctx, database.Scope{Tenant: tenant}, f)
}

// relaxed runs f in a transaction of a tenant that may be lost when the server's machine fails.
// Use it for changes that are repeated or detected later.
func (s *Store) relaxed(ctx context.Context, tenant string, f func(tx *tx) error) error {
	return s.transact(ctx, database.Scope{Tenant: tenant, Relaxed: true}, f)
}

// transact runs f in a transaction, and again if that loses a race. It reads the clock within the
// transaction: after waiting for the file's lock an earlier time would be out of date.
func (s *Store) transact(ctx context.Context, scope database.Scope, f func(tx *tx) error) error {
	var wrote int64
	err := s.db.In(ctx, scope, func(d *database.Tx) error {
		w := newTx(d)
		err := f(w)
		wrote = w.wrote
		return cmp.Or(w.err, err)
	})
	if err != nil {
		return unavailable(err)
	}
	s.wrote.Add(wrote)
	return nil
}

// view returns the result of f, which only reads.
func view[T any](ctx context.Context, s *Store, scope database.Scope, f func(tx *tx) (T, error)) (result T, err error) {
	err = s.db.View(ctx, scope, func(d *database.Tx) (err error) {
		w := newTx(d)
		result, err = f(w)
		return cmp.Or(w.err, err)
	})
	return result, unavailable(err)
}

// A tx is a transaction. After the first error of the database its statements do nothing, as if no row
// existed, and the transaction is rolled back and returns that error. So its code need not look at errors
// between statements, except before it repeats them.
type tx struct {
	db    *database.Tx
	now   int64
	wrote int64 // number of messages put into mailboxes
	err   error // the first error of the database
}

func newTx(d *database.Tx) *tx { return &tx{db: d, now: d.Now().UnixNano()} }

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (n int64) {
	if t.err == nil {
		n, t.err = t.db.Exec(query, args...)
	}
	return n
}

// row runs a statement that returns at most one row.
func (t *tx) row(query string, args ...any) row {
	if t.err != nil {
		return row{t: t}
	}
	return row{t, t.db.Row(query, args...)}
}

type row struct {
	t *tx
	database.Row
}

// read reads the columns of a row, which must exist.
func (r row) read(dest ...any) {
	if r.t.err == nil {
		r.t.err = r.Scan(dest...)
	}
}

// find reads the columns of the row and reports whether it exists.
func (r row) find(dest ...any) bool {
	if r.t.err != nil {
		return false
	}
	err := r.Scan(dest...)
	if !errors.Is(err, sql.ErrNoRows) {
		r.t.err = err
	}
	return err == nil
}

// rows runs a statement and returns the results of read for all rows.
func rows[T any](t *tx, read func(row database.Rows) (T, error), query string, args ...any) (all []T) {
	if t.err == nil {
		all, t.err = database.Collect(t.db, read, query, args...)
	}
	if t.err != nil {
		return nil
	}
	return all
}

// fresh returns the SQL condition that the lease in column is valid at time ?1. A lease that
// ends more than two leases later was taken before the clock was set back, and is not valid.
func fresh(column string) string {
	return `(` + column + ` > ?1 AND ` + column + ` <= ?1 + ` + twoLeases + `)`
}

// parentOver is the SQL condition that the children of session p must treat it as ended at time
// ?1: it was ended, has been gone for [ParentGone], or no longer exists (NULL).
var parentOver = `(p.id IS NULL OR p.ended IS NOT NULL OR (p.seen <= ?1 - ` + parentGone + ` AND p.run_state NOT IN ('starting', 'running')
	AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = p.tenant AND a.session = p.id AND ` + fresh("a.until") + `)))`

var twoLeases, parentGone = strconv.FormatInt(int64(2*Lease), 10), strconv.FormatInt(int64(ParentGone), 10)
