package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// A statement is a statement with PostgreSQL's placeholders.
type statement struct {
	text string
	args []any
}

// A connection is a connection to the server that a transaction uses.
//
// If the caller stops waiting, the connection stays open until the statements in progress have
// ended. If attache closed it, pgbouncer would also close its own connection to the server, and
// on a busy machine both would spend all their time connecting. The connection is closed if the
// server has not answered within [Timeouts.Answer].
type connection struct {
	server  *Server
	sql     *sql.Conn
	pgx     *pgx.Conn
	ctx     context.Context // outlives the caller's context
	cancel  context.CancelFunc
	pending <-chan answer // the answer that the caller did not wait for; nil if there is none
}

// An answer is the answer of the server to statements sent together.
type answer struct {
	results []result
	err     error
}

// acquire returns a connection, which the caller must release. Errors are errBusy,
// connectionError and ctx's error. A caller waits for a slot and not in the pool, so that errBusy
// can be told from an error of the server.
func (s *Server) acquire(ctx context.Context) (*connection, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
	}
	c := &connection{server: s}
	c.ctx, c.cancel = context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeouts.Answer)
	if err := c.await(ctx, func() answer { return answer{err: c.open()} }).err; err != nil {
		c.release()
		return nil, connectionError{err}
	}
	return c, nil
}

// await returns the answer of f. If ctx ends first, f continues, and the caller can no longer
// use the connection. f must use c.ctx, which ends after [Timeouts.Answer].
func (c *connection) await(ctx context.Context, f func() answer) answer {
	answers := make(chan answer, 1)
	go func() { answers <- f() }()
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		c.pending = answers
		return answer{err: ctx.Err()}
	}
}

// open gets a connection from the pool, or opens one.
func (c *connection) open() (err error) {
	if c.sql, err = c.server.sql.Conn(c.ctx); err != nil {
		return err
	}
	return c.sql.Raw(func(driver any) error {
		c.pgx = driver.(*stdlib.Conn).Conn() // used after Raw; the pool gives it to nobody else until c.sql is closed
		return nil
	})
}

// send sends statements in one round trip and returns their results. They are one transaction,
// unless they begin or end one. If ctx ends first, the statements continue: see await.
func (c *connection) send(ctx context.Context, statements ...statement) ([]result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.pending != nil { // pgx is not for two goroutines
		return nil, context.Canceled
	}
	a := c.await(ctx, func() answer { return c.exchange(statements) })
	return a.results, a.err
}

// exchange sends statements and reads their results. After an error the server executes none of those that
// follow. Close reads what is left, so that the connection can be used again.
func (c *connection) exchange(statements []statement) (a answer) {
	batch := &pgx.Batch{}
	for _, s := range statements {
		batch.Queue(s.text, s.args...)
	}
	from := c.pgx.SendBatch(c.ctx, batch)
	for range statements {
		r, err := readResult(from)
		if err != nil {
			a.err = err
			break
		}
		a.results = append(a.results, r)
	}
	if err := from.Close(); a.err == nil {
		a.err = err
	}
	return a
}

// inTransaction reports whether a transaction is open, or has failed and was not rolled back. The caller must
// not use it while an answer is pending.
func (c *connection) inTransaction() bool {
	return c.pgx != nil && !c.pgx.IsClosed() && c.pgx.PgConn().TxStatus() != 'I'
}

// release returns the connection to the pool as soon as its statements have ended. It does not
// block.
func (c *connection) release() {
	if c.pending == nil && !c.inTransaction() {
		c.giveBack()
		return
	}
	c.server.pending.Add(1)
	go func() {
		defer c.server.pending.Add(-1)
		if c.pending != nil {
			<-c.pending
		}
		if c.inTransaction() && c.exchange([]statement{{text: `rollback`}}).err != nil {
			_ = c.pgx.Close(c.ctx)
		}
		c.giveBack()
	}()
}

// giveBack frees the slot last, so that its next owner finds the connection in the pool.
func (c *connection) giveBack() {
	if c.sql != nil {
		_ = c.sql.Close() // the pool drops a connection whose pgx.Conn is closed
	}
	c.cancel()
	<-c.server.slots
}

// begin begins a transaction with the settings of scope. It returns the server's time.
func (c *connection) begin(ctx context.Context, scope Scope, readOnly bool) (now time.Time, err error) {
	text := `begin`
	if readOnly {
		text = `begin read only`
	}
	results, err := c.send(ctx, statement{text: text}, c.server.settings(scope))
	if err != nil {
		return now, err
	}
	return results[1].now()
}

// settings returns a statement that applies the settings of a transaction and selects the time. They hold for
// the transaction only, because with pgbouncer the next one may be another client's. Row level security reads
// the two of attache; idle_in_transaction_session_timeout ends the transaction of a process that was stopped
// within it, whose locks would otherwise stay.
func (s *Server) settings(scope Scope) statement {
	all, durable := "off", "on"
	if scope.AllTenants {
		all = "on"
	}
	if scope.Relaxed {
		durable = "off"
	}
	return statement{`SELECT clock_timestamp(), set_config('attache.tenant', $1, true), set_config('attache.all_tenants', $2, true),
		set_config('synchronous_commit', $3, true), set_config('statement_timeout', $4, true), set_config('lock_timeout', $5, true),
		set_config('idle_in_transaction_session_timeout', $6, true)`,
		[]any{scope.Tenant, all, durable, milliseconds(s.o.Timeouts.Statement), milliseconds(s.o.Timeouts.Lock), milliseconds(s.o.Timeouts.Answer)}}
}

// now returns the server's time from a result of settings.
func (r result) now() (now time.Time, err error) {
	return now, Row{rows: r.rows()}.Scan(&now, nil, nil, nil, nil, nil, nil)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// exec implements [runner].
func (c *connection) exec(ctx context.Context, query string, args []any) (int64, error) {
	results, err := c.send(ctx, statement{query, args})
	if err != nil {
		return 0, err
	}
	return results[0].tag.RowsAffected(), nil
}

// query implements [runner].
func (c *connection) query(ctx context.Context, query string, args []any) (Rows, error) {
	results, err := c.send(ctx, statement{query, args})
	if err != nil {
		return nil, err
	}
	return results[0].rows(), nil
}

// once runs f in one transaction, without repeating it.
func (s *Server) once(ctx context.Context, db *DB, scope Scope, readOnly bool, f func(*Tx) error) error {
	return s.onConnection(ctx, func(c *connection) (begun bool, err error) {
		now, err := c.begin(ctx, scope, readOnly)
		if err != nil {
			return false, err
		}
		if err := f(&Tx{ctx: ctx, db: db, now: now, to: c}); err != nil {
			return true, err
		}
		results, err := c.send(ctx, statement{text: `commit`})
		if err == nil && results[0].tag.String() != "COMMIT" { // a statement has failed
			err = pgx.ErrTxCommitRollback
		}
		return true, err
	})
}

// onConnection runs f with a connection. If the connection turns out to be lost before f has
// begun a transaction, because it was cut while idle, onConnection runs f with another one, once. Later it is
// unknown what the server has done, and the error is a connectionError.
func (s *Server) onConnection(ctx context.Context, f func(*connection) (begun bool, err error)) error {
	for again := true; ; again = false {
		c, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		begun, err := f(c)
		if err != nil && c.pending == nil && c.inTransaction() {
			_, _ = c.send(ctx, statement{text: `rollback`}) // if this fails, release repeats it
		}
		late := err != nil && c.pending != nil
		cut := err != nil && !late && c.pgx.IsClosed()
		if !late && isReadOnly(err) { // a new connection may be to another host, or have another default
			_ = c.pgx.Close(c.ctx)
		}
		c.release()
		switch {
		case cut && !begun && again:
			continue
		case cut || late:
			return connectionError{err}
		}
		return err
	}
}

// single runs one statement on a server. It also returns the server's time. The settings and the statement go
// together, so they are one transaction without begin and commit.
func (db *DB) single(ctx context.Context, s Scope, query string, args []any) (r result, now time.Time, err error) {
	q := statement{db.bind(query, args), args}
	err = db.retry(ctx, func() error {
		return db.server.guard(ctx, db, s, func(ctx context.Context) error {
			return db.server.onConnection(ctx, func(c *connection) (bool, error) {
				results, err := c.send(ctx, db.server.settings(s), q)
				if err == nil {
					r = results[1]
					now, err = results[0].now()
				}
				return true, err // as if begun: the statement may have been executed
			})
		})
	})
	return r, now, err
}

// guard runs f, which uses the server, unless the breaker is open. It tells the breaker whether
// the server answered in time. A process whose own callers use all connections has not lost the server; but
// if a connection waits for an answer that its caller gave up, the server is probably slow.
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
	case ctx.Err() != nil && err != nil: // the caller gave up
		s.breaker.abandon()
		return err
	case errors.Is(err, errBusy) && s.pending.Load() == 0:
		s.breaker.abandon()
		return fmt.Errorf("%w: %w", ErrDown, err)
	case errors.Is(err, errBusy) || lost || isUnable(err) || err != nil && inner.Err() != nil:
		s.breaker.recordFailure(err)
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	s.breaker.recordSuccess()
	return err
}

// check checks the version of the tables of db until it is usable. It does not check again: if the tables are
// migrated to the next version while the program runs, it works with them.
func (s *Server) check(ctx context.Context, db *DB) error {
	db.checking.Lock()
	defer db.checking.Unlock()
	if db.checked {
		return nil
	}
	versions, err := s.versions(ctx, db, []Schema{db.schema})
	if err == nil {
		err = versions[0].Err()
	}
	db.checked = err == nil
	return err
}

// A connectionError is an error of the connection: it is unknown what the server has done.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

// isUnable reports whether the server cannot work now, or took too long.
func isUnable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	// The classes are connection, resources, and operator, which has statement_timeout.
	return isReadOnly(err) || ok && slices.Contains([]string{"08", "53", "57"}, e.Code[:min(2, len(e.Code))])
}

// isReadOnly reports whether the server takes no changes: it is a replica, or default_transaction_read_only is on.
func isReadOnly(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "25006"
}
