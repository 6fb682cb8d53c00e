package teams

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/sessionstate/sqlitefile"
)

// version is the version of the schema, and the file's user_version.
const version = 1

// schema has times in nanoseconds since 1970 and the types that SQLite and PostgreSQL share.
const schema = `
CREATE TABLE workspaces (tenant TEXT NOT NULL, id TEXT NOT NULL, live BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (tenant, id));
CREATE TABLE sessions (
	tenant TEXT NOT NULL, id TEXT NOT NULL,
	key TEXT NOT NULL,                   -- SHA-256 of the session key
	token TEXT NOT NULL DEFAULT '',      -- SHA-256 of what a spawned session proves itself with
	workspace TEXT NOT NULL, trust TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '',
	title TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL DEFAULT '',
	parent TEXT NOT NULL DEFAULT '', created_by TEXT NOT NULL, depth BIGINT NOT NULL DEFAULT 0,
	children BIGINT NOT NULL DEFAULT 0,  -- running now
	spawned BIGINT NOT NULL DEFAULT 0,   -- in its life
	last_spawn BIGINT NOT NULL DEFAULT 0, spawn_key TEXT,
	queued BIGINT NOT NULL DEFAULT 0, next_seq BIGINT NOT NULL DEFAULT 0,
	inbox_until BIGINT NOT NULL DEFAULT 0, inbox_owner TEXT NOT NULL DEFAULT '', woken BIGINT NOT NULL DEFAULT 0,
	run BIGINT NOT NULL DEFAULT 0, run_until BIGINT NOT NULL DEFAULT 0, run_state TEXT NOT NULL DEFAULT '',
	agent_session TEXT, exit_status BIGINT NOT NULL DEFAULT 0, cost_usd TEXT NOT NULL DEFAULT '',
	created BIGINT NOT NULL, seen BIGINT NOT NULL, ended BIGINT, PRIMARY KEY (tenant, id));
CREATE UNIQUE INDEX sessions_key ON sessions (tenant, key);
CREATE INDEX sessions_agent ON sessions (tenant, agent_session) WHERE agent_session IS NOT NULL;
CREATE UNIQUE INDEX sessions_spawn ON sessions (tenant, parent, spawn_key) WHERE spawn_key IS NOT NULL;
CREATE INDEX sessions_ws ON sessions (tenant, workspace, created) WHERE ended IS NULL;
CREATE INDEX sessions_parent ON sessions (tenant, parent);
CREATE INDEX sessions_run ON sessions (run_until) WHERE run_state IN ('starting', 'running');
CREATE TABLE attachments (
	tenant TEXT NOT NULL, session TEXT NOT NULL, instance TEXT NOT NULL,
	server TEXT NOT NULL, host TEXT NOT NULL, pid BIGINT NOT NULL,
	wakes BIGINT NOT NULL DEFAULT 0,     -- this process can wake the session
	until BIGINT NOT NULL, called BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (tenant, session, instance));
CREATE TABLE messages (
	tenant TEXT NOT NULL, to_session TEXT NOT NULL, seq BIGINT NOT NULL,
	id TEXT NOT NULL, from_session TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
	digest TEXT NOT NULL, send_key TEXT, state TEXT NOT NULL,
	reported TEXT NOT NULL DEFAULT 'queued', -- the state that the sender knows
	tries BIGINT NOT NULL DEFAULT 0, announced BIGINT NOT NULL DEFAULT 0,
	created BIGINT NOT NULL, expires BIGINT NOT NULL, carried BIGINT, carried_by TEXT, seen BIGINT,
	PRIMARY KEY (tenant, to_session, seq));
CREATE UNIQUE INDEX messages_id ON messages (tenant, id);
CREATE INDEX messages_open ON messages (tenant, to_session, seq) WHERE state = 'queued';
CREATE INDEX messages_due ON messages (expires) WHERE state = 'queued';
CREATE INDEX messages_from ON messages (tenant, from_session, to_session, created);
CREATE UNIQUE INDEX messages_key ON messages (tenant, from_session, to_session, send_key) WHERE send_key IS NOT NULL`

// The times that the store works by.
const (
	// Lease is how long a process that stopped renewing counts as alive (T9), and a run
	// whose supervisor did (T25).
	Lease = 90 * time.Second
	// RenewEvery is how often the holder of a lease renews it.
	RenewEvery = 30 * time.Second
	// InboxLease is how long a taker may leave messages unsettled (T14).
	InboxLease = 10 * time.Second
	// Expiry is how long a message waits for its session (T35).
	Expiry = 24 * time.Hour
	// Retention is how long a settled message and a session that is over are kept.
	Retention = 7 * 24 * time.Hour
	// BusyFor is how long a session counts as working after a call (T9).
	BusyFor = time.Minute
	// ParentGone is how long a session has to be gone to count as over for those that it
	// created (T29).
	ParentGone = 10 * time.Minute
)

// Options are the options of [Open].
type Options struct {
	// Path is the file. If it does not exist, Open creates it and its directory, for their
	// owner alone.
	Path string
	// Now is the clock; nil stands for time.Now. Processes share the wall clock.
	Now func() time.Time
}

// A Store is the registry and the mailboxes. Several processes, and several goroutines of
// each, may use one file at once; one process opens it once.
type Store struct {
	db    *sql.DB
	now   func() time.Time
	wrote atomic.Int64 // messages that this process put into mailboxes

	version, mail *sql.Stmt
}

// lockWait is how long a method waits while another process has the file locked (T15).
const lockWait = 5 * time.Second

// Open opens the file of o. An error means that it cannot be used, and names it.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	db, err := sqlitefile.Open(ctx, sqlitefile.Options{Path: o.Path, Wait: lockWait, Schema: schema, Version: version, LocalOnly: true})
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, now: o.Now}
	if s.version, err = db.PrepareContext(ctx, `PRAGMA data_version`); err == nil {
		s.mail, err = db.PrepareContext(ctx, `SELECT EXISTS (SELECT 1 FROM messages
			WHERE tenant = ?1 AND to_session = ?2 AND state = 'queued' AND announced = 0)`)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the file. A process that ends without Close loses nothing.
func (s *Store) Close() error { return s.db.Close() }

// A Version changes when a process has changed the file.
type Version struct{ others, own int64 }

// Version returns the version of the file. It takes some microseconds (T39).
func (s *Store) Version(ctx context.Context) (v Version, err error) {
	v.own = s.wrote.Load()
	err = s.version.QueryRowContext(ctx).Scan(&v.others)
	return v, err
}

// in runs f in a transaction, which holds the file's write lock. now is read within it: a
// process that waited for the lock must not act by an old clock.
func (s *Store) in(ctx context.Context, f func(tx *tx) error) error {
	t, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return unavailable(err)
	}
	w := &tx{Tx: t, ctx: ctx, now: s.now().UnixNano()}
	if err := f(w); err != nil {
		_ = t.Rollback()
		return unavailable(err)
	}
	if err := t.Commit(); err != nil {
		return unavailable(err)
	}
	s.wrote.Add(w.wrote)
	return nil
}

// A tx is one transaction.
type tx struct {
	*sql.Tx
	ctx   context.Context
	now   int64
	wrote int64 // messages put into mailboxes
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t *tx) row(query string, args ...any) *sql.Row { return t.QueryRowContext(t.ctx, query, args...) }

// fresh is the condition that a lease holds at time ?1. One that would hold for longer than
// two leases was taken before the clock was set back, and is over.
func fresh(column string) string {
	return `(` + column + ` > ?1 AND ` + column + ` <= ?1 + ` + twoLeases + `)`
}

// parentOver is the condition that the session p, which is NULL if it is forgotten, is over
// at time ?1 for those that it created: it was ended, or is gone for [ParentGone] (T29).
var parentOver = `(p.id IS NULL OR p.ended IS NOT NULL OR (p.seen <= ?1 - ` + parentGone + ` AND p.run_state NOT IN ('starting', 'running')
	AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = p.tenant AND a.session = p.id AND ` + fresh("a.until") + `)))`

// Twice [Lease], and [ParentGone], in nanoseconds.
const (
	twoLeases  = `180000000000`
	parentGone = `600000000000`
)
