package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync/atomic"
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
	Answer    time.Duration // until a connection is closed whose caller did not wait for the answer
	Again     time.Duration // how long a transaction is tried again that lost a race with another one
}

// DefaultTimeouts returns the timeouts that apply unless the caller sets others.
func DefaultTimeouts() Timeouts {
	return Timeouts{Connect: time.Second, Statement: 500 * time.Millisecond, Lock: 200 * time.Millisecond, All: 2 * time.Second, Answer: 10 * time.Second, Again: 5 * time.Second}
}

// idleTime is how long a connection is kept that nobody uses: thousands of processes may share
// a server.
const idleTime = 10 * time.Second

// A Server is a PostgreSQL database, for the whole process. It connects when something is asked
// of it, and works through pgbouncer in transaction mode: what a transaction needs is set
// within it.
//
// After two failures it does not ask the server for a while, and returns [ErrDown] at once.
type Server struct {
	o       ServerOptions
	sql     *sql.DB
	config  *pgx.ConnConfig
	breaker breaker
	phase   time.Duration // see [DB.Version]
	slots   chan struct{} // one for each connection that is used
	left    atomic.Int64  // connections whose callers did not wait for the answer

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
	t, d := &o.Timeouts, DefaultTimeouts()
	t.Connect, t.Statement, t.Lock = cmp.Or(t.Connect, d.Connect), cmp.Or(t.Statement, d.Statement), cmp.Or(t.Lock, d.Lock)
	t.All, t.Answer, t.Again = cmp.Or(t.All, d.All), cmp.Or(t.Answer, d.Answer), cmp.Or(t.Again, d.Again)
	// A prepared statement belongs to a connection, which pgbouncer gives to others.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnectTimeout = o.Timeouts.Connect
	config.RuntimeParams["application_name"] = "attache"
	if o.BreakerNow == nil {
		o.BreakerNow = time.Now
	}
	connections := max(o.Connections, 1)
	s := &Server{o: o, sql: stdlib.OpenDB(*config), config: config, phase: rand.N(time.Hour), slots: make(chan struct{}, connections), checkEvery: checkEvery}
	// A process with many connections has many clients, who wait for it to ask again.
	s.breaker = breaker{now: o.BreakerNow, tell: o.Tell, longest: longestOpen / time.Duration(connections)}
	s.sql.SetMaxOpenConns(cap(s.slots))
	s.sql.SetMaxIdleConns(cap(s.slots))
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

// guard runs f, which asks the server, unless that is known to be away, and notes whether the
// server answered in time.
func (s *Server) guard(ctx context.Context, db *DB, scope Scope, f func(context.Context) error) error {
	if err := s.breaker.admit(); err != nil && !scope.Urgent {
		return err
	}
	inner, cancel := context.WithTimeout(ctx, s.o.Timeouts.All)
	defer cancel()
	err := s.check(inner, db)
	if err == nil {
		err = f(inner)
	}
	_, lost := errors.AsType[connectionError](err)
	switch {
	case ctx.Err() != nil && err != nil: // the caller's own
		s.breaker.abandon()
		return err
	case errors.Is(err, errBusy) && s.left.Load() == 0:
		s.breaker.abandon()
		return fmt.Errorf("%w: %w", ErrDown, err)
	case errors.Is(err, errBusy) || lost || isUnable(err) || err != nil && inner.Err() != nil:
		s.breaker.failed(err)
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	s.breaker.succeeded()
	return err
}

// check checks the version of the tables of db once.
func (s *Server) check(ctx context.Context, db *DB) error {
	db.checking.Lock()
	defer db.checking.Unlock()
	if db.checked {
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
		err = Version{db.schema.Name, has, len(steps)}.Err()
	}
	db.checked = err == nil
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

// A connectionError is one of the connection: it is not known what the server did.
type connectionError struct{ error }

// Unwrap returns the reason.
func (e connectionError) Unwrap() error { return e.error }

// isUnable reports whether the server said that it can do nothing now, or took too long.
func isUnable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
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
	e, ok := errors.AsType[*pgconn.PgError](err)
	// serialization, deadlock, lock_timeout, and that another one inserted the row
	return ok && slices.Contains([]string{"40001", "40P01", "55P03", "23505"}, e.Code)
}
