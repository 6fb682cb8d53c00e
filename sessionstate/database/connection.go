package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A statement has the placeholders of the server.
type statement struct {
	text string
	args []any
}

// A connection is one to the server, while a transaction has it.
//
// A caller that does not wait any longer leaves the connection to what is under way. It is not
// closed for that: pgbouncer would close its own connection to the server in turn, and on a busy
// machine the two would be kept busy with connecting alone. It is closed if the server has not
// answered within [Timeouts.Answer].
type connection struct {
	server *Server
	sql    *sql.Conn
	pgx    *pgx.Conn
	ctx    context.Context // of the connection: that of the caller ends before
	end    context.CancelFunc
	left   <-chan answer // where the answer comes that nobody waits for; nil for none
}

// An answer is that of a server to statements that were sent together.
type answer struct {
	results []result
	err     error
}

// acquire returns a connection, which the caller releases. Errors are errBusy, connectionError
// and that of ctx.
func (s *Server) acquire(ctx context.Context) (*connection, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
	}
	c := &connection{server: s}
	c.ctx, c.end = context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeouts.Answer)
	if err := c.await(ctx, func() answer { return answer{err: c.open()} }).err; err != nil {
		c.release()
		return nil, connectionError{err}
	}
	return c, nil
}

// await returns the answer of f, which goes on if ctx ends first: then the connection is of no use
// to the caller any more.
func (c *connection) await(ctx context.Context, f func() answer) answer {
	answers := make(chan answer, 1)
	go func() { answers <- f() }()
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		c.left = answers
		return answer{err: ctx.Err()}
	}
}

// open takes a connection out of the pool, or opens one.
func (c *connection) open() (err error) {
	if c.sql, err = c.server.sql.Conn(c.ctx); err != nil {
		return err
	}
	return c.sql.Raw(func(driver any) error {
		d, ok := driver.(*stdlib.Conn)
		if !ok {
			return errors.New("the driver is another one")
		}
		c.pgx = d.Conn() // in use beyond Raw; the pool gives it to nobody else meanwhile
		return nil
	})
}

// send sends statements together, and returns their results. They are one transaction, unless
// one is begun or ended by them, and all of them take one round trip. If ctx ends first, the
// statements go on: see await.
func (c *connection) send(ctx context.Context, statements ...statement) ([]result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.left != nil {
		return nil, context.Canceled
	}
	a := c.await(ctx, func() answer { return c.exchange(statements) })
	return a.results, a.err
}

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

// inTransaction reports whether a transaction has begun and is not over.
func (c *connection) inTransaction() bool {
	return c.pgx != nil && !c.pgx.IsClosed() && c.pgx.PgConn().TxStatus() != 'I'
}

// release gives the connection back, as soon as what is under way is over. The caller does not
// wait for that.
func (c *connection) release() {
	if c.left == nil && !c.inTransaction() {
		c.giveBack()
		return
	}
	c.server.left.Add(1)
	go func() {
		defer c.server.left.Add(-1)
		if c.left != nil {
			<-c.left
		}
		if c.inTransaction() && c.exchange([]statement{{text: `rollback`}}).err != nil {
			_ = c.pgx.Close(c.ctx)
		}
		c.giveBack()
	}()
}

func (c *connection) giveBack() {
	if c.sql != nil {
		_ = c.sql.Close() // the pool drops a connection that is closed
	}
	c.end()
	<-c.server.slots
}

// begin begins a transaction in which the settings of scope hold. It returns the
// server's time.
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

// settings returns the statement that sets what holds in a transaction, and returns the time.
func (s *Server) settings(scope Scope) statement {
	all, durable := "off", "on"
	if scope.AllTenants {
		all = "on"
	}
	if scope.Relaxed {
		durable = "off"
	}
	return statement{`SELECT clock_timestamp(), set_config('attache.tenant', $1, true), set_config('attache.all_tenants', $2, true),
		set_config('synchronous_commit', $3, true), set_config('statement_timeout', $4, true), set_config('lock_timeout', $5, true)`,
		[]any{scope.Tenant, all, durable, milliseconds(s.o.Timeouts.Statement), milliseconds(s.o.Timeouts.Lock)}}
}

// now returns the server's time from the result of settings.
func (r result) now() (now time.Time, err error) {
	return now, rowOf(r.rows(), nil).Scan(&now, nil, nil, nil, nil, nil)
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

// once runs f in one transaction. A connection that was cut while nobody used it is replaced
// by another, once: nothing has been done on it.
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
		if err == nil && results[0].tag.String() != "COMMIT" { // a statement had failed
			err = pgx.ErrTxCommitRollback
		}
		return true, err
	})
}

// onConnection runs f with a connection. If that was cut before f has done anything, f gets
// another one, once.
func (s *Server) onConnection(ctx context.Context, f func(*connection) (begun bool, err error)) error {
	for again := true; ; again = false {
		c, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		begun, err := f(c)
		if err != nil && c.left == nil && c.inTransaction() {
			_, _ = c.send(ctx, statement{text: `rollback`}) // or release does it
		}
		late := err != nil && c.left != nil
		cut := err != nil && !late && c.pgx.IsClosed()
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

// errBusy is returned when others had all connections of this process for too long. It says
// nothing of the server.
var errBusy = errors.New("all connections of this process to the database are in use")
