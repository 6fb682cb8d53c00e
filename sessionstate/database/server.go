package database

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// errBusy is returned when all connections of this process stay in use for too long. The server
// may be fine.
var errBusy = errors.New("all connections of this process to the database are in use")

// ServerOptions are the options of [Connect].
type ServerOptions struct {
	// URL is the address as in libpq: postgres://user:password@host/database. Without a
	// password in it, the password comes from the same places as in libpq.
	URL string
	// Connections is the maximum number of connections, apart from that of Listen; 0 stands for one.
	Connections int
	// Timeouts bounds the duration of transactions; zero fields stand for [DefaultTimeouts].
	Timeouts Timeouts
	// Tell, if not nil, is called with the reason when the server becomes unavailable, and with
	// nil when it is available again. It must not block, nor use the Server.
	Tell func(error)
	// BreakerNow is the clock for the retries of an unavailable server; nil stands for time.Now.
	BreakerNow func() time.Time
}

// Timeouts bound how long the database may take.
type Timeouts struct {
	Connect   time.Duration // to connect
	Statement time.Duration // for one statement
	Lock      time.Duration // to wait for a row that another transaction has locked
	All       time.Duration // for one transaction, even if the server does not answer at all
	Answer    time.Duration // to close a connection whose caller did not wait for the answer, or whose process stopped within a transaction; it also bounds each transaction
	Again     time.Duration // to repeat a transaction that lost a race with another one
}

// DefaultTimeouts returns the defaults of the timeouts.
func DefaultTimeouts() Timeouts {
	return Timeouts{Connect: time.Second, Statement: 500 * time.Millisecond, Lock: 200 * time.Millisecond, All: 2 * time.Second, Answer: 10 * time.Second, Again: 5 * time.Second}
}

// PersonTimeouts returns timeouts for a command that a person waits for. It may read a large table, or import
// many rows in one transaction.
func PersonTimeouts() Timeouts {
	return Timeouts{Connect: 10 * time.Second, Statement: time.Minute, Lock: time.Minute, All: 2 * time.Minute, Answer: 2 * time.Minute, Again: time.Minute}
}

// idleTime is how long an idle connection stays open. It is short, because thousands of
// processes may share a server.
const idleTime = 10 * time.Second

// A Server is the connection of the process to a PostgreSQL database. It connects on first use.
// It works through pgbouncer in transaction mode, because each transaction sets what it needs.
//
// After two failures it does not use the server for a while, and returns [ErrDown] immediately.
type Server struct {
	o       ServerOptions
	sql     *sql.DB
	config  *pgx.ConnConfig
	breaker breaker
	phase   time.Duration // see [DB.Version]
	slots   chan struct{} // one for each connection in use
	pending atomic.Int64  // number of connections whose callers did not wait for the answer

	listeners  listeners
	checkEvery time.Duration // see [checkEvery]; tests shorten it
}

// CheckURL returns an error if the address of a database is invalid. The error contains no
// password.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

func parseURL(address string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(address)
	if err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") && !passwordOutside(address) {
		config, err := pgx.ParseConfig(address)
		if err == nil && !strings.Contains(config.Host, "@") { // that would be a part of a password with "?"
			return config, nil
		}
		if file, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, fmt.Errorf("it names the file %s: %w: correct the path", file.Path, file.Err)
		}
	}
	// The error's own text contains the address.
	return nil, errors.New("it is not the address of a PostgreSQL database, or its certificate, key or service cannot be used: write it as postgres://USER:PASSWORD@HOST/DATABASE, with %XX for characters that a URL cannot contain")
}

// passwordOutside reports whether pgx would take a part of the password for the host or the
// database, which errors name, because the password contains an unescaped "@" or "/".
func passwordOutside(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	rest, _, _ = strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	return strings.Count(authority, "@") > 1 || strings.Contains(path, "@")
}

// Connect returns a Server without connecting to it yet. An error means that the URL is invalid.
func Connect(o ServerOptions) (*Server, error) {
	config, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	t, d := &o.Timeouts, DefaultTimeouts()
	t.Connect, t.Statement, t.Lock = cmp.Or(t.Connect, d.Connect), cmp.Or(t.Statement, d.Statement), cmp.Or(t.Lock, d.Lock)
	t.All, t.Answer, t.Again = cmp.Or(t.All, d.All), cmp.Or(t.Answer, d.Answer), cmp.Or(t.Again, d.Again)
	// Prepared statements belong to a connection, and pgbouncer shares connections.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnectTimeout = o.Timeouts.Connect
	config.RuntimeParams["application_name"] = "attache"
	config.RuntimeParams["datestyle"] = "ISO" // pgx reads no other, and the database may have another
	if o.BreakerNow == nil {
		o.BreakerNow = time.Now
	}
	connections := max(o.Connections, 1)
	s := &Server{o: o, sql: stdlib.OpenDB(*config), config: config, phase: rand.N(time.Hour), slots: make(chan struct{}, connections), checkEvery: checkEvery}
	s.listeners.all = map[*func(string)]bool{}
	// A process with many connections has many clients that wait for the next attempt.
	s.breaker = breaker{now: o.BreakerNow, report: o.Tell, longest: longestOpen / time.Duration(connections)}
	s.sql.SetMaxOpenConns(cap(s.slots))
	s.sql.SetMaxIdleConns(cap(s.slots))
	s.sql.SetConnMaxIdleTime(idleTime)
	return s, nil
}

// Address returns a description of the database without secrets.
func (s *Server) Address() string {
	var hosts []string
	for _, try := range s.attempts() {
		if host := net.JoinHostPort(try.Host, strconv.Itoa(int(try.Port))); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return fmt.Sprintf("PostgreSQL database %q of %s", s.config.Database, strings.Join(hosts, ", "))
}

// attempts returns the hosts in the order in which pgx tries them, some twice: with TLS and without.
func (s *Server) attempts() []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: s.config.Host, Port: s.config.Port, TLSConfig: s.config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, s.config.Fallbacks...)
}

// Close closes the connections.
func (s *Server) Close() error { return s.sql.Close() }

// Denied adds to err what to do, if the role that attache uses may not make the change.
func Denied(err error) error {
	if denied(err) {
		return fmt.Errorf("%w: give in store.url the role that owns the tables (docs/scale.md)", err)
	}
	return err
}

// denied reports whether the role lacks a privilege.
func denied(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "42501"
}

// lostRace reports whether a transaction failed only because another one was faster.
func lostRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	// serialization, deadlock, lock_timeout, and a row that another transaction has inserted
	return ok && slices.Contains([]string{"40001", "40P01", "55P03", "23505"}, e.Code)
}
