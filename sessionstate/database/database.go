// Package database opens the databases in which processes share state: a SQLite file for the
// processes of one user, or a PostgreSQL database for those of many machines.
//
// Each part of the program has its own [Schema] and uses it through a [DB], with the same
// statements on both engines. [OpenFile] opens a file. [Connect] connects to a PostgreSQL
// server, and [Server.Open] returns the DB of a part; [Open] does either.
//
// The package repairs nothing. If a database is damaged, unavailable or of another version,
// it returns an error, and the caller decides how to continue.
package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// ErrDown is returned while a server cannot be reached or does not answer in time. The caller
// continues without it, and may try again later: see [Server].
var ErrDown = errors.New("the database is not available")

// A DB gives access to the tables of one part of the program. It is safe for use by several
// goroutines.
type DB struct {
	// Clock is the clock that Now reads; nil stands for the one that the processes share. Set
	// it before the first use.
	Clock func() time.Time

	sql    *sql.DB
	server *Server // nil for a file
	path   string  // of a file
	schema Schema

	trace    func(statement string) // may be nil
	rebound  sync.Map               // of a server: statement to its form for PostgreSQL
	prepared sync.Map               // of a file: statement to *sql.Stmt
	version  *sql.Stmt              // of a file

	checking sync.Mutex // held during the check, so that it is made once
	checked  bool       // this program can use the version on the server
}

// A Scope describes a transaction.
type Scope struct {
	// Tenant is the tenant whose rows the transaction sees; "" if there is only one.
	Tenant string
	// AllTenants makes the rows of all tenants visible. It is for work of no tenant, such as a sweep, and for
	// a tenant that is not known yet, as when a key is looked up.
	AllTenants bool
	// Relaxed does not wait until a change is on the disk: the last changes may be lost when
	// the server's machine fails. Transactions on a file are always relaxed.
	Relaxed bool
	// Urgent uses a server even if it is considered unavailable, because the caller cannot try
	// again later.
	Urgent bool
}

// Open returns the tables of a part. It does not use the server; the first transaction checks
// the version.
func (s *Server) Open(schema Schema) *DB { return &DB{sql: s.sql, server: s, schema: schema} }

// In runs f in a transaction and commits it, unless f returns an error. On a file the
// transaction holds the write lock, on a server it is READ COMMITTED. If it loses a race with
// another transaction, In runs f again, so f must reset the variables that it captures. On a server, a limit
// must be checked by the statement that changes the row: what f has read before may have changed since.
func (db *DB) In(ctx context.Context, s Scope, f func(*Tx) error) error {
	return db.retry(ctx, func() error { return db.transact(ctx, s, false, f) })
}

// retry runs f again while it loses races with other transactions, which happens only on a server.
func (db *DB) retry(ctx context.Context, f func() error) error {
	var again time.Duration
	if db.server != nil {
		again = db.server.o.Timeouts.Again
	}
	for until := time.Now().Add(again); ; {
		err := f()
		if !lostRace(err) || time.Now().After(until) || ctx.Err() != nil {
			return err
		}
	}
}

// Exec runs one statement in its own transaction, and returns how many rows it changed. It is
// much faster than [DB.In]: on a server it takes one round trip. An error that wraps [ErrDown] does not say
// whether the change was made.
func (db *DB) Exec(ctx context.Context, s Scope, query string, args ...any) (int64, error) {
	args = plain(args)
	if db.server != nil {
		r, _, err := db.single(ctx, s, query, args)
		return r.tag.RowsAffected(), err
	}
	stmt, err := db.prepare(ctx, db.bind(query, args))
	if err != nil {
		return 0, db.named(err)
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, db.named(err)
	}
	return result.RowsAffected()
}

// Row runs one statement that returns at most one row in its own transaction. On a server it
// takes one round trip.
func (db *DB) Row(ctx context.Context, s Scope, query string, args ...any) Row {
	args = plain(args)
	if db.server != nil {
		r, now, err := db.single(ctx, s, query, args)
		return Row{r.rows(), err, db.now(now)}
	}
	stmt, err := db.prepare(ctx, db.bind(query, args))
	if err != nil {
		return Row{err: db.named(err)}
	}
	rows, err := stmt.QueryContext(ctx, args...)
	return Row{rows, db.named(err), db.now(time.Time{})}
}

// prepare returns a prepared statement of a file. SQLite takes longer to parse a statement than
// to run it. There are few statements, because their texts are constants.
func (db *DB) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if found, ok := db.prepared.Load(query); ok {
		return found.(*sql.Stmt), nil
	}
	stmt, err := db.sql.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, ok := db.prepared.LoadOrStore(query, stmt); ok { // another goroutine was faster
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// View runs f, which must not change anything. On a file its statements do not wait for a
// writer, and a later one may see changes that an earlier one did not.
func (db *DB) View(ctx context.Context, s Scope, f func(*Tx) error) error {
	if db.server == nil {
		return db.named(f(&Tx{ctx: ctx, db: db, to: sqlStatements{db.sql}}))
	}
	return db.transact(ctx, s, true, f)
}

func (db *DB) transact(ctx context.Context, s Scope, readOnly bool, f func(*Tx) error) error {
	if db.server != nil {
		return db.server.guard(ctx, db, s, func(ctx context.Context) error { return db.server.once(ctx, db, s, readOnly, f) })
	}
	t, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return db.named(err)
	}
	defer func() { _ = t.Rollback() }() // does nothing after Commit
	if err := f(&Tx{ctx: ctx, db: db, to: sqlStatements{t}}); err != nil {
		return db.named(err)
	}
	return db.named(t.Commit())
}

// Close closes a file. [Server.Close] closes the DBs of a server. A process that ends without
// Close loses nothing.
func (db *DB) Close() error {
	if db.server != nil {
		return nil
	}
	return db.sql.Close()
}

// Shared reports whether processes on other machines can use the database.
func (db *DB) Shared() bool { return db.server != nil }

// Version returns a number that changes when another process has changed the database. A
// server does not report changes, so there the number changes once per every, at a different
// time in each process: thousands of processes must not ask at the same time.
func (db *DB) Version(ctx context.Context, every time.Duration) (v int64, err error) {
	if db.server != nil {
		return time.Now().Add(db.server.phase).UnixNano() / int64(max(every, 1)), nil
	}
	err = db.version.QueryRowContext(ctx).Scan(&v)
	return v, err
}

// A Tx is a transaction. The placeholders in its statements are ?1, ?2 and so on.
type Tx struct {
	ctx context.Context
	db  *DB
	now time.Time // of the server; zero for a file
	to  runner
}

// A runner runs statements with the placeholders of the engine.
type runner interface {
	exec(ctx context.Context, query string, args []any) (int64, error)
	query(ctx context.Context, query string, args []any) (Rows, error)
}

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	args = plain(args)
	return t.to.exec(t.ctx, t.db.bind(query, args), args)
}

// Row runs a statement that returns at most one row.
func (t *Tx) Row(query string, args ...any) Row {
	rows, err := t.Rows(query, args...)
	return Row{rows: rows, err: err}
}

// Rows runs a statement that returns rows.
func (t *Tx) Rows(query string, args ...any) (Rows, error) {
	args = plain(args)
	return t.to.query(t.ctx, t.db.bind(query, args), args)
}

// Collect runs a statement and returns the results of read for all rows.
func Collect[T any](t *Tx, read func(row Rows) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := t.Rows(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := read(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// bind returns a statement with the placeholders of the engine. The arguments of a statement
// must have the same types each time.
func (db *DB) bind(query string, args []any) string {
	if db.trace != nil {
		db.trace(query)
	}
	if db.server == nil {
		return query
	}
	if bound, ok := db.rebound.Load(query); ok {
		return bound.(string)
	}
	bound := rebind(query, args)
	db.rebound.Store(query, bound)
	return bound
}

// rebind replaces ?1 with $1::bigint, and so on for other types: without a prepared statement
// PostgreSQL does not know the types of the arguments. No statement of the program has a
// question mark in a literal.
func rebind(query string, args []any) string {
	var pairs []string
	for i := len(args); i > 0; i-- { // ?10 before ?1, as the Replacer takes the first pair that fits
		kind := "text"
		switch args[i-1].(type) {
		case int64:
			kind = "bigint"
		case bool:
			kind = "boolean"
		}
		pairs = append(pairs, fmt.Sprintf("?%d", i), fmt.Sprintf("$%d::%s", i, kind))
	}
	return strings.NewReplacer(pairs...).Replace(query)
}

// plain converts arguments to types that both drivers accept, because pgx does not accept named
// types. It leaves arguments that it cannot convert, and the driver refuses them.
func plain(args []any) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			v = arg
		}
		all[i] = v
	}
	return all
}

// Now returns the time of the clock that the processes share: the server's, or that of this
// machine. On a server it is the time at which the transaction began.
func (t *Tx) Now() time.Time { return t.db.now(t.now) }

// now returns the time of db.Clock, of the server, or of this machine if server is zero.
func (db *DB) now(server time.Time) time.Time {
	switch {
	case db.Clock != nil:
		return db.Clock()
	case server.IsZero():
		return time.Now()
	}
	return server
}
