package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// ServerOptions are the options of [Connect].
type ServerOptions struct {
	// URL is the address, as libpq has it: postgres://user:password@host/database. A password
	// that is not in it comes from where libpq finds it.
	URL string
	// Connections is how many there are at most; 0 stands for one.
	Connections int
	// Timeouts bounds how long a transaction may take; zero fields stand for [DefaultTimeouts].
	Timeouts Timeouts
	// Tell is called when the server went away, with the reason, and when it is back, with nil.
	Tell func(error)
	// BreakerNow is the clock by which a server that was away is asked again; nil stands for
	// time.Now.
	BreakerNow func() time.Time
}

// Timeouts are how long the database may take.
type Timeouts struct {
	Connect   time.Duration // to connect
	Statement time.Duration // for one statement
	Lock      time.Duration // to wait for a row that another transaction has; then it is tried again
	All       time.Duration // for one transaction: a server that does not answer at all cannot keep the others
	Again     time.Duration // how long a transaction is tried again that lost a race with another one
}

// DefaultTimeouts returns those of S5.
func DefaultTimeouts() Timeouts {
	return Timeouts{Connect: time.Second, Statement: 500 * time.Millisecond, Lock: 200 * time.Millisecond, All: 2 * time.Second, Again: 5 * time.Second}
}

// idleTime is how long a connection is kept that nobody uses: thousands of processes may share
// a server (S2).
const idleTime = 10 * time.Second

// A Server is a PostgreSQL database, for the whole process. It connects when something is asked
// of it, and works through pgbouncer in transaction mode: what a transaction needs is set
// within it.
//
// After two failures it does not ask the server for a while, and returns [ErrDown] at once
// (S6).
type Server struct {
	o       ServerOptions
	sql     *sql.DB
	config  *pgx.ConnConfig
	breaker breaker
	phase   time.Duration // see [DB.Version]

	notices    notices
	checkEvery time.Duration // see [checkEvery]; tests shorten it
}

// CheckURL returns what is wrong with the address of a database, without a password in it.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

func parseURL(address string) (*pgx.ConnConfig, error) {
	var config *pgx.ConnConfig
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "postgres" && u.Scheme != "postgresql" {
		err = errors.New("the scheme is another one")
	}
	if err == nil {
		config, err = pgx.ParseConfig(address)
	}
	if err != nil { // its text has the address in it
		return nil, errors.New("it is not the address of a PostgreSQL database: write it as postgres://USER:PASSWORD@HOST/DATABASE, with %XX for what a URL cannot have in it")
	}
	return config, nil
}

// Connect prepares the use of a server. An error is a mistake in the URL.
func Connect(o ServerOptions) (*Server, error) {
	config, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	d := DefaultTimeouts()
	for _, t := range []struct{ set, to *time.Duration }{
		{&o.Timeouts.Connect, &d.Connect}, {&o.Timeouts.Statement, &d.Statement}, {&o.Timeouts.Lock, &d.Lock}, {&o.Timeouts.All, &d.All}, {&o.Timeouts.Again, &d.Again},
	} {
		if *t.set <= 0 {
			*t.set = *t.to
		}
	}
	// A prepared statement belongs to a connection, which pgbouncer gives to others.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnectTimeout = o.Timeouts.Connect
	config.RuntimeParams["application_name"] = "attache"
	if o.BreakerNow == nil {
		o.BreakerNow = time.Now
	}
	s := &Server{o: o, sql: stdlib.OpenDB(*config), config: config, breaker: breaker{now: o.BreakerNow, tell: o.Tell}, phase: rand.N(time.Hour), checkEvery: checkEvery}
	s.sql.SetMaxOpenConns(max(o.Connections, 1))
	s.sql.SetMaxIdleConns(max(o.Connections, 1))
	s.sql.SetConnMaxIdleTime(idleTime)
	return s, nil
}

// Address returns where the database is, without a secret.
func (s *Server) Address() string {
	return fmt.Sprintf("PostgreSQL database %q of %s:%d", s.config.Database, s.config.Host, s.config.Port)
}

// Open returns the tables of a part. It asks the server nothing; the first transaction checks
// their version.
func (s *Server) Open(schema Schema) *DB { return &DB{sql: s.sql, server: s, schema: schema} }

// Close closes the connections.
func (s *Server) Close() error { return s.sql.Close() }

// transact runs f in a transaction, unless the server is known to be away.
func (s *Server) transact(ctx context.Context, db *DB, scope Scope, readOnly bool, f func(*Tx) error) error {
	if err := s.breaker.admit(); err != nil && !scope.Urgent {
		return err
	}
	inner, cancel := context.WithTimeout(ctx, s.o.Timeouts.All)
	defer cancel()
	err := s.check(inner, db)
	if err == nil {
		err = s.once(inner, db, scope, readOnly, f)
	}
	var lost connectionError
	switch {
	case ctx.Err() != nil && err != nil: // the caller's own
		s.breaker.abandon()
		return err
	case errors.Is(err, errBusy):
		s.breaker.abandon()
		return fmt.Errorf("%w: %w", ErrDown, err)
	case errors.As(err, &lost) || isUnable(err):
		s.breaker.failed(err)
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	s.breaker.succeeded()
	return err
}

// check checks the version of the tables of db once.
func (s *Server) check(ctx context.Context, db *DB) error {
	db.known.mu.Lock()
	defer db.known.mu.Unlock()
	if db.known.ok {
		return nil
	}
	steps, err := db.schema.steps(postgresEngine)
	if err != nil {
		return err
	}
	var has int
	err = s.once(ctx, db, Scope{}, true, func(t *Tx) (err error) {
		has, err = t.schemaVersion(db.schema.Name)
		return err
	})
	if err == nil {
		err = db.schema.checkVersion(has, len(steps))
	}
	db.known.ok = err == nil
	return err
}

// schemaVersion returns the version of the tables of a part, 0 if there are none.
func (t *Tx) schemaVersion(name string) (version int, err error) {
	var there bool
	if err := t.Row(`SELECT to_regclass('attache_schema') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = t.Row(`SELECT version FROM attache_schema WHERE name = ?1`, name).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return version, err
}

// errBusy is returned when others had all connections of this process for too long. It says
// nothing of the server.
var errBusy = errors.New("all connections of this process to the database are in use")

// A connectionError is one of the connection: it is not known what the server did.
type connectionError struct{ error }

// Unwrap returns the reason.
func (e connectionError) Unwrap() error { return e.error }

// once runs f in one transaction. A connection that was cut while nobody used it is replaced by
// another, once: nothing has been done on it.
func (s *Server) once(ctx context.Context, db *DB, scope Scope, readOnly bool, f func(*Tx) error) error {
	for again := true; ; again = false {
		conn, err := s.sql.Conn(ctx)
		if err != nil {
			if use := s.sql.Stats(); ctx.Err() != nil && use.InUse == use.MaxOpenConnections {
				return errBusy
			}
			return connectionError{err}
		}
		t, now, err := s.begin(ctx, conn, scope, readOnly)
		if err != nil {
			lost := isCut(conn)
			_ = conn.Close()
			switch {
			case lost && again:
				continue
			case lost:
				return connectionError{err}
			}
			return err
		}
		err = f(&Tx{ctx: ctx, db: db, now: now, to: t})
		if err == nil {
			err = t.Commit()
		}
		if err != nil && isCut(conn) {
			err = connectionError{err}
		}
		_ = t.Rollback() // does nothing after Commit
		_ = conn.Close() // gives it back
		return err
	}
}

// begin begins a transaction and sets what holds in it (S4, S5). It returns the server's time.
func (s *Server) begin(ctx context.Context, conn *sql.Conn, scope Scope, readOnly bool) (*sql.Tx, time.Time, error) {
	t, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: readOnly})
	if err != nil {
		return nil, time.Time{}, err
	}
	all, durable := "off", "on"
	if scope.AllTenants {
		all = "on"
	}
	if scope.Relaxed {
		durable = "off"
	}
	var now time.Time
	var none string
	err = t.QueryRowContext(ctx, `SELECT clock_timestamp(), set_config('attache.tenant', $1, true), set_config('attache.all_tenants', $2, true),
			set_config('synchronous_commit', $3, true), set_config('statement_timeout', $4, true), set_config('lock_timeout', $5, true)`,
		scope.Tenant, all, durable, milliseconds(s.o.Timeouts.Statement), milliseconds(s.o.Timeouts.Lock)).
		Scan(&now, &none, &none, &none, &none, &none)
	if err != nil {
		_ = t.Rollback()
		return nil, time.Time{}, err
	}
	return t, now, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// isCut reports whether the connection is of no use any more.
func isCut(conn *sql.Conn) bool {
	cut := false
	err := conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		cut = ok && c.Conn().IsClosed()
		return nil
	})
	return cut || err != nil
}

// isUnable reports whether the server said that it can do nothing now, or took too long.
func isUnable(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "57014", // a statement took longer than statement_timeout
		"25006": // it is a replica, which takes no changes
		return true
	}
	class := e.Code[:min(2, len(e.Code))]
	return class == "08" || class == "53" || class == "57" // connection, resources, operator
}

// lostRace reports whether a transaction failed only since another one was faster.
func lostRace(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01", // serialization, deadlock
		"55P03", // lock_timeout
		"23505": // another one inserted the row
		return true
	}
	return false
}
