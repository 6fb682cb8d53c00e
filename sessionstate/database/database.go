// Package database opens the databases in which processes share state: a SQLite file for
// those of one user, or a PostgreSQL database for those of many machines.
//
// A part of the program has a [Schema] of its own and uses it through a [DB], by the same
// statements on both engines. [OpenFile] opens a file, [Connect] a PostgreSQL server, of which
// [Server.Open] gives each part its DB; [Open] does either.
//
// The package repairs nothing. A database that is damaged, of another version or away is an
// error, and the caller decides what it does without.
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

// The errors that a caller may want to tell apart.
var (
	// ErrVersion is returned for a database whose tables this program does not know, or not
	// yet: see the text for what to do.
	ErrVersion = errors.New("the database has another version")
	// ErrDown is returned while a server cannot be reached or does not answer in time. The
	// caller does without it, and may try again: see [Server].
	ErrDown = errors.New("the database is not available")
)

// A DB is the tables of one part of the program. It is safe for use by several goroutines.
type DB struct {
	// Clock is the clock that Now reads; nil stands for the one that the processes share. It is set
	// before the first use.
	Clock func() time.Time

	sql    *sql.DB
	server *Server // nil for a file
	schema Schema

	trace   func(statement string) // nil for nobody
	rebound sync.Map               // statement to its form for the engine
	version *sql.Stmt
	alone   statements // of a file

	checking sync.Mutex
	checked  bool // the server has a version that can be used
}

// A Scope is what a transaction is about.
type Scope struct {
	// Tenant is whose rows the transaction sees; "" where there is one tenant.
	Tenant string
	// AllTenants has the transaction see the rows of every tenant.
	AllTenants bool
	// Relaxed does not wait until a change is on the disk: the last ones may be lost when the
	// server's machine fails. A file is always like this.
	Relaxed bool
	// Urgent asks a server also while it is thought to be away: nobody can try again later.
	Urgent bool
}

// In runs f in a transaction and commits it, unless f returns an error. On a file it holds the
// write lock, on a server it is READ COMMITTED. If it loses a race with another transaction it
// runs again, so f must not rely on what it captured before.
func (db *DB) In(ctx context.Context, s Scope, f func(*Tx) error) error {
	return db.race(ctx, func() error { return db.transact(ctx, s, false, f) })
}

// race runs f again while it loses races with other transactions, which happens on a server only.
func (db *DB) race(ctx context.Context, f func() error) error {
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

// Exec runs one statement in a transaction of its own, and returns how many rows it changed. That
// takes a fraction of the time of [DB.In]: on a server it is one round trip.
func (db *DB) Exec(ctx context.Context, s Scope, query string, args ...any) (int64, error) {
	args = plain(args)
	if db.server != nil {
		r, _, err := db.single(ctx, s, query, args)
		return r.tag.RowsAffected(), err
	}
	stmt, err := db.alone.get(ctx, db.sql, db.bind(query, args))
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Row runs one statement that returns one row at most in a transaction of its own; on a server
// that is one round trip.
func (db *DB) Row(ctx context.Context, s Scope, query string, args ...any) Row {
	args = plain(args)
	if db.server != nil {
		r, now, err := db.single(ctx, s, query, args)
		return Row{r.rows(), err, db.now(now)}
	}
	stmt, err := db.alone.get(ctx, db.sql, db.bind(query, args))
	if err != nil {
		return rowOf(nil, err)
	}
	row := rowOf(stmt.QueryContext(ctx, args...))
	row.now = db.now(time.Time{})
	return row
}

// single runs one statement on a server. It returns the server's time, too.
func (db *DB) single(ctx context.Context, s Scope, query string, args []any) (r result, now time.Time, err error) {
	q := statement{db.bind(query, args), args}
	err = db.race(ctx, func() error {
		return db.server.guard(ctx, db, s, func(ctx context.Context) error {
			return db.server.onConnection(ctx, func(c *connection) (bool, error) {
				results, err := c.send(ctx, db.server.settings(s), q)
				if err == nil {
					r = results[1]
					now, err = results[0].now()
				}
				return true, err
			})
		})
	})
	return r, now, err
}

// View runs f, which changes nothing. On a file its statements do not wait for a writer and
// may see the changes between them.
func (db *DB) View(ctx context.Context, s Scope, f func(*Tx) error) error {
	if db.server == nil {
		return f(&Tx{ctx: ctx, db: db, to: sqlStatements{db.sql}})
	}
	return db.transact(ctx, s, true, f)
}

func (db *DB) transact(ctx context.Context, s Scope, readOnly bool, f func(*Tx) error) error {
	if db.server != nil {
		return db.server.guard(ctx, db, s, func(ctx context.Context) error { return db.server.once(ctx, db, s, readOnly, f) })
	}
	t, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }() // does nothing after Commit
	if err := f(&Tx{ctx: ctx, db: db, to: sqlStatements{t}}); err != nil {
		return err
	}
	return t.Commit()
}

// Close closes a file. A DB of a server is closed by [Server.Close]. A process that ends
// without Close loses nothing.
func (db *DB) Close() error {
	if db.server != nil {
		return nil
	}
	return db.sql.Close()
}

// Shared reports whether processes of other machines use the database too.
func (db *DB) Shared() bool { return db.server != nil }

// Version returns a number that changes when another process has changed the database. A
// server does not say that; the number changes once in every, at another time in each process:
// thousands of them must not ask at once.
func (db *DB) Version(ctx context.Context, every time.Duration) (v int64, err error) {
	if db.server != nil {
		return time.Now().Add(db.server.phase).UnixNano() / int64(max(every, 1)), nil
	}
	err = db.version.QueryRowContext(ctx).Scan(&v)
	return v, err
}

// A Tx runs statements. Their parameters are ?1, ?2 and so on.
type Tx struct {
	ctx context.Context
	db  *DB
	now time.Time // zero for that of this machine
	to  runner
}

// A runner runs statements, which have the placeholders of the engine.
type runner interface {
	exec(ctx context.Context, query string, args []any) (int64, error)
	query(ctx context.Context, query string, args []any) (Rows, error)
}

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	args = plain(args)
	return t.to.exec(t.ctx, t.db.bind(query, args), args)
}

// Row runs a statement that returns one row at most.
func (t *Tx) Row(query string, args ...any) Row { return rowOf(t.Rows(query, args...)) }

// Rows runs a statement that returns rows.
func (t *Tx) Rows(query string, args ...any) (Rows, error) {
	args = plain(args)
	return t.to.query(t.ctx, t.db.bind(query, args), args)
}

// bind returns a statement with the placeholders of the engine. A statement has arguments of
// the same types each time.
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

// rebind writes ?1 as $1::bigint, and so on for other types: without a prepared statement
// PostgreSQL is told of no argument what it is. No statement of the program has a question mark
// in a text of its own.
func rebind(query string, args []any) string {
	var pairs []string
	for i := len(args); i > 0; i-- { // ?10 before ?1
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

// plain returns arguments of the types that both drivers know: pgx does not look through a
// named type. What cannot be turned is left for the driver to refuse.
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

// Now returns the time by the clock that the processes share: a server's own, or that of this
// machine. On a server it is when the transaction began.
func (t *Tx) Now() time.Time { return t.db.now(t.now) }

// now returns the time of the server, that of this machine if it is zero.
func (db *DB) now(server time.Time) time.Time {
	switch {
	case db.Clock != nil:
		return db.Clock()
	case server.IsZero():
		return time.Now()
	}
	return server
}
