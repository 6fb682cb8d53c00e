package teams

import (
	"context"
	"embed"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the tables of the registry and the mailboxes.
func Schema() database.Schema { return database.Schema{Name: "teams", Files: files} }

// The times that the store works by.
const (
	// Lease is how long a process that stopped renewing counts as alive, and a run
	// whose supervisor did.
	Lease = 90 * time.Second
	// RenewEvery is how often the holder of a lease renews it.
	RenewEvery = 30 * time.Second
	// InboxLease is how long a taker may leave messages unsettled.
	InboxLease = 10 * time.Second
	// Expiry is how long a message waits for its session.
	Expiry = 24 * time.Hour
	// Retention is how long a settled message and a session that is over are kept.
	Retention = 7 * 24 * time.Hour
	// BusyFor is how long a session counts as working after a call.
	BusyFor = time.Minute
	// ParentGone is how long a session has to be gone to count as over for those that it
	// created.
	ParentGone = 10 * time.Minute
)

// Options are the options of [Open].
type Options struct {
	// Server has the tables, where several machines share them; nil for a file.
	Server *database.Server
	// Path is the file. If it does not exist, Open creates it and its directory, for their
	// owner alone.
	Path string
	// Now is the clock; nil stands for the one of the database, which processes share.
	Now func() time.Time
}

// A Store is the registry and the mailboxes. Several processes, and several goroutines of
// each, may use one database at once; one process opens it once.
type Store struct {
	db      *database.DB
	address string
	wrote   atomic.Int64 // messages that this process put into mailboxes
}

// lockWait is how long a method waits while another process has the file locked.
const lockWait = 5 * time.Second

// Open opens the database of o. An error means that the file cannot be used, and names it. A
// server is not asked yet.
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

// Address returns where the registry is, without a secret.
func (s *Store) Address() string { return s.address }

// Close closes the file. A process that ends without Close loses nothing.
func (s *Store) Close() error { return s.db.Close() }

// A Version changes when a process has changed the database.
type Version struct{ others, own int64 }

// Version returns the version of the database. Of a file it takes some microseconds; a
// server is not asked, and its version changes once in every.
func (s *Store) Version(ctx context.Context, every time.Duration) (v Version, err error) {
	v.own = s.wrote.Load()
	v.others, err = s.db.Version(ctx, every)
	return v, err
}

// in runs f in a transaction of a tenant that is on the disk when it is over.
func (s *Store) in(ctx context.Context, tenant string, f func(tx *tx) error) error {
	return s.transact(ctx, database.Scope{Tenant: tenant}, f)
}

// soon runs f in a transaction of a tenant that may be lost when the server's machine fails:
// what it changes is found out or told again.
func (s *Store) soon(ctx context.Context, tenant string, f func(tx *tx) error) error {
	return s.transact(ctx, database.Scope{Tenant: tenant, Relaxed: true}, f)
}

// transact runs f in a transaction, again if it loses a race. now is read within it: a process
// that waited for the file's lock must not act by an old clock.
func (s *Store) transact(ctx context.Context, scope database.Scope, f func(tx *tx) error) error {
	var wrote int64
	err := s.db.In(ctx, scope, func(d *database.Tx) error {
		w := newTx(d)
		err := f(w)
		wrote = w.wrote
		return err
	})
	if err != nil {
		return unavailable(err)
	}
	s.wrote.Add(wrote)
	return nil
}

// view runs f, which only reads.
func (s *Store) view(ctx context.Context, scope database.Scope, f func(tx *tx) error) error {
	return unavailable(s.db.View(ctx, scope, func(d *database.Tx) error { return f(newTx(d)) }))
}

// A tx is one transaction.
type tx struct {
	*database.Tx
	now   int64
	wrote int64 // messages put into mailboxes
}

func newTx(d *database.Tx) *tx { return &tx{Tx: d, now: d.Now().UnixNano()} }

// fresh is the condition that a lease holds at time ?1. One that would hold for longer than
// two leases was taken before the clock was set back, and is over.
func fresh(column string) string {
	return `(` + column + ` > ?1 AND ` + column + ` <= ?1 + ` + twoLeases + `)`
}

// parentOver is the condition that the session p, which is NULL if it is forgotten, is over
// at time ?1 for those that it created: it was ended, or is gone for [ParentGone].
var parentOver = `(p.id IS NULL OR p.ended IS NOT NULL OR (p.seen <= ?1 - ` + parentGone + ` AND p.run_state NOT IN ('starting', 'running')
	AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = p.tenant AND a.session = p.id AND ` + fresh("a.until") + `)))`

// Twice [Lease], and [ParentGone], in nanoseconds.
const (
	twoLeases  = `180000000000`
	parentGone = `600000000000`
)
