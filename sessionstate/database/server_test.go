package database

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// notes returns a schema with one table and the given number of versions.
func notes(versions int) Schema {
	files := fstest.MapFS{
		"schema/1.sql": &fstest.MapFile{Data: []byte(`CREATE TABLE notes (tenant TEXT NOT NULL, id TEXT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (tenant, id))`)},
		"schema/1.postgres.sql": &fstest.MapFile{Data: []byte(`ALTER TABLE notes ENABLE ROW LEVEL SECURITY; ALTER TABLE notes FORCE ROW LEVEL SECURITY;
			CREATE POLICY tenant ON notes USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on')`)},
		"schema/2.sql": &fstest.MapFile{Data: []byte(`ALTER TABLE notes ADD COLUMN a TEXT`)},
		"schema/3.sql": &fstest.MapFile{Data: []byte(`ALTER TABLE notes ADD COLUMN b TEXT`)},
	}
	for n := versions + 1; n <= 3; n++ {
		delete(files, "schema/"+string(rune('0'+n))+".sql")
	}
	return Schema{Name: "notes", Files: files}
}

// slow are timeouts that are long enough for a slow machine.
var slow = Timeouts{Connect: time.Minute, Statement: time.Minute, Lock: time.Minute, All: 2 * time.Minute, Answer: 2 * time.Minute, Again: 2 * time.Minute}

func connect(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	if o.Connections == 0 {
		o.Connections = 5
	}
	if o.Timeouts == (Timeouts{}) {
		o.Timeouts = slow
	}
	s, err := Connect(o)
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func migrate(t *testing.T, s *Server, schema Schema) {
	t.Helper()
	if _, err := s.Migrate(t.Context(), []Schema{schema}); err != nil {
		t.Fatal(err)
	}
}

func insert(ctx context.Context, db *DB, tenant, id string) error {
	return db.In(ctx, Scope{Tenant: tenant}, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO notes (tenant, id, n) VALUES (?1, ?2, ?3)`, tenant, id, 0)
		return err
	})
}

func count(t *testing.T, db *DB, s Scope) (n int) {
	t.Helper()
	check(t, db.View(t.Context(), s, func(tx *Tx) error { return tx.Row(`SELECT count(*) FROM notes`).Scan(&n) }))
	return n
}

// TestServer runs the tests that can share a server.
func TestServer(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	for name, test := range map[string]func(*testing.T, *pgtest.Cluster){
		"Versions": testVersions, "TenantsAreApart": testTenantsAreApart, "RacesAreRunAgain": testRacesAreRunAgain,
		"ConnectionsThatFail": testConnectionsThatFail, "ConnectionOutlivesItsCallers": testConnectionOutlivesItsCallers,
		"StoppedProcess": testStoppedProcess, "Urgent": testUrgent, "Breaker": testBreaker,
		"SettingsOfTransactions": testSettingsOfTransactions, "ReadOnlyConnection": testReadOnlyConnection, "SingleStatements": testSingleStatements, "Problems": testProblems,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cluster)
		})
	}
}

// Only one of many concurrent callers migrates. A program works with tables of its own version and
// of the next one; for other versions the error says what to do.
func testVersions(t *testing.T, cluster *pgtest.Cluster) {
	url := cluster.Database()
	s := connect(t, ServerOptions{URL: url})
	use := func(versions int) error {
		return s.Open(notes(versions)).View(t.Context(), Scope{}, func(tx *Tx) error { return nil })
	}
	if err := use(1); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), `version 0, and this program needs 1: run "attache store migrate"`) {
		t.Errorf("an empty database: %v", err)
	}
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			if _, err := connect(t, ServerOptions{URL: url}).Migrate(t.Context(), []Schema{notes(1)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	check(t, insert(t.Context(), s.Open(notes(1)), "a", "1"))
	if err := use(2); !errors.Is(err, ErrVersion) {
		t.Errorf("older tables: %v", err)
	}
	migrate(t, s, notes(2))
	if err := errors.Join(use(1), use(2)); err != nil {
		t.Errorf("tables of the next version: %v", err)
	}
	migrate(t, s, notes(3))
	if err := use(1); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "use a newer attache") {
		t.Errorf("newer tables: %v", err)
	}
	if n := count(t, s.Open(notes(3)), Scope{Tenant: "a"}); n != 1 {
		t.Errorf("after the migrations there are %d rows, want 1", n)
	}
	broken := Schema{Name: "broken", Files: fstest.MapFS{"schema/1.sql": &fstest.MapFile{Data: []byte(`CREATE TABLE half (a TEXT); CREATE TABLE half (a TEXT)`)}}}
	if _, err := s.Migrate(t.Context(), []Schema{broken}); err == nil {
		t.Error("a failing migration returned no error")
	}
	if v, err := s.Versions(t.Context(), []Schema{broken, notes(3)}); err != nil || v[0].Has != 0 || v[1].Has != 3 {
		t.Errorf("after a failed migration: %v, %v", v, err)
	}
	if problems, err := s.Problems(t.Context(), []Schema{notes(3)}); err != nil || len(problems) != 1 || !strings.Contains(problems[0], "fsync") {
		t.Errorf("problems: %q, %v; want only fsync, which is off in tests", problems, err)
	}
	readOnly := connect(t, ServerOptions{URL: url + "&default_transaction_read_only=on"})
	if problems, err := readOnly.Problems(t.Context(), []Schema{notes(3)}); err != nil || !strings.Contains(strings.Join(problems, "\n"), "default_transaction_read_only is on") {
		t.Errorf("problems of a read-only role: %q, %v", problems, err)
	}
	if err := insert(t.Context(), readOnly.Open(notes(3)), "a", "2"); !errors.Is(err, ErrDown) {
		t.Errorf("a change on a replica: %v", err)
	}
	german := connect(t, ServerOptions{URL: url + "&options=-c%20datestyle%3DGerman"})
	if n := count(t, german.Open(notes(3)), Scope{Tenant: "a"}); n != 1 {
		t.Errorf("with another DateStyle there are %d rows, want 1", n)
	}
	used := s.Open(notes(3))
	if _, err := used.Exec(t.Context(), Scope{}, `REVOKE ALL ON attache_schema FROM CURRENT_USER`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Problems(t.Context(), []Schema{notes(3)}); err == nil || !strings.Contains(err.Error(), "grant the role SELECT") {
		t.Errorf("problems of a role that may not read the tables: %v", err)
	}
	if err := insert(t.Context(), used, "a", "3"); err != nil {
		t.Errorf("the version is checked again: %v", err)
	}
}

// A statement without a condition for the tenant does not read or change rows of other tenants.
func testTenantsAreApart(t *testing.T, cluster *pgtest.Cluster) {
	s := connect(t, ServerOptions{URL: cluster.Database()})
	migrate(t, s, notes(1))
	db := s.Open(notes(1))
	for _, tenant := range []string{"", "a", "b"} {
		check(t, insert(t.Context(), db, tenant, "1"))
	}
	for scope, want := range map[Scope]int{{}: 1, {Tenant: "a"}: 1, {Tenant: "c"}: 0, {AllTenants: true}: 3} {
		if n := count(t, db, scope); n != want {
			t.Errorf("%+v sees %d rows, want %d", scope, n, want)
		}
		var changed int64
		err := db.In(t.Context(), scope, func(tx *Tx) (err error) {
			changed, err = tx.Exec(`UPDATE notes SET n = n + 1`)
			return err
		})
		if err != nil || changed != int64(want) {
			t.Errorf("%+v changes %d rows (%v), want %d", scope, changed, err, want)
		}
	}
	err := db.In(t.Context(), Scope{Tenant: "a"}, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO notes (tenant, id, n) VALUES ('b', '2', 0)`)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a row of another tenant was inserted: %v", err)
	}
}

// Two transactions that lock the same rows in different orders both succeed.
func testRacesAreRunAgain(t *testing.T, cluster *pgtest.Cluster) {
	o := slow
	o.Lock = 50 * time.Millisecond
	s := connect(t, ServerOptions{URL: cluster.Database(), Timeouts: o})
	migrate(t, s, notes(1))
	db := s.Open(notes(1))
	for _, id := range []string{"1", "2"} {
		check(t, insert(t.Context(), db, "", id))
	}
	var wait sync.WaitGroup
	both := make(chan struct{}) // closed when each has locked its first row
	var have sync.WaitGroup
	have.Add(2)
	go func() { have.Wait(); close(both) }()
	for _, order := range [][]string{{"1", "2"}, {"2", "1"}} {
		first := true
		wait.Go(func() {
			err := db.In(t.Context(), Scope{}, func(tx *Tx) error {
				for i, id := range order {
					if _, err := tx.Exec(`UPDATE notes SET n = n + 1 WHERE tenant = '' AND id = ?1`, id); err != nil {
						return err
					}
					if i == 0 && first {
						first = false
						have.Done()
						<-both
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	var sum int
	if err := db.View(t.Context(), Scope{}, func(tx *Tx) error { return tx.Row(`SELECT sum(n)::bigint FROM notes WHERE tenant = ''`).Scan(&sum) }); err != nil || sum != 4 {
		t.Errorf("the sum is %d (%v), want 4", sum, err)
	}
}

// A link is a TCP connection to a server that can fail.
type link struct {
	t        *testing.T
	listen   net.Listener
	to       string
	accepted chan struct{} // one for each connection

	mu    sync.Mutex
	stall chan struct{} // not nil while the link is stalled; closed at the end of that
	cutOn string        // bytes from the client that cut the connection, once
	conns []net.Conn
}

// newLink returns a link to the socket of a server, and the URL of the database through it.
func newLink(t *testing.T, c *pgtest.Cluster, url string) (*link, string) {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	l := &link{t: t, listen: listen, to: c.Socket(), accepted: make(chan struct{}, 100)}
	go l.serve()
	t.Cleanup(func() { _ = listen.Close(); l.pass(); l.cut() })
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "postgres:///"), "?")
	return l, "postgres://attache@" + listen.Addr().String() + "/" + name + "?sslmode=disable"
}

func (l *link) serve() {
	for {
		client, err := l.listen.Accept()
		if err != nil {
			return
		}
		l.accepted <- struct{}{}
		server, err := net.Dial("unix", l.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		go l.copy(server, client, true)
		go l.copy(client, server, false)
	}
}

func (l *link) copy(to, from net.Conn, fromClient bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		stall, cut := l.stall, fromClient && l.cutOn != "" && strings.Contains(string(buffer[:n]), l.cutOn)
		if cut {
			l.cutOn = "" // a repetition would succeed
		}
		l.mu.Unlock()
		if stall != nil {
			<-stall
		}
		if cut {
			_ = from.Close() // first, or the server could answer before
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil || cut {
			return
		}
	}
}

// cut cuts all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// hold stalls the link until pass is called, like a server that does not answer.
func (l *link) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall = make(chan struct{})
}

func (l *link) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stall != nil {
		close(l.stall)
	}
	l.stall, l.cutOn = nil, ""
}

// A clock is a clock that only pass moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openOverLink returns a server with an empty table of notes, and that table through a link, over one
// connection.
func openOverLink(t *testing.T, cluster *pgtest.Cluster) (direct *Server, l *link, db *DB) {
	t.Helper()
	url := cluster.Database()
	direct = connect(t, ServerOptions{URL: url})
	migrate(t, direct, notes(1))
	l, over := newLink(t, cluster, url)
	return direct, l, connect(t, ServerOptions{URL: over, Connections: 1}).Open(notes(1))
}

// Each failure of a connection during a transaction has the right error.
func testConnectionsThatFail(t *testing.T, cluster *pgtest.Cluster) {
	direct, l, db := openOverLink(t, cluster)
	s := db.server
	check := func(what string, err error, down bool, rows int) {
		t.Helper()
		if errors.Is(err, ErrDown) != down || !down && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := count(t, direct.Open(notes(1)), Scope{}); n != rows {
			t.Errorf("%s: %d rows, want %d", what, n, rows)
		}
		s.breaker.recordSuccess()
	}
	check("at first", insert(t.Context(), db, "", "1"), false, 1)
	l.cut()
	check("cut while nobody used it", insert(t.Context(), db, "", "2"), false, 2)
	check("cut within a transaction", db.In(t.Context(), Scope{}, func(tx *Tx) error {
		if _, err := tx.Exec(`INSERT INTO notes (tenant, id, n) VALUES ('', '3', 0)`); err != nil {
			return err
		}
		l.cut()
		_, err := tx.Exec(`SELECT 1`)
		return err
	}), true, 2)
	l.mu.Lock()
	l.cutOn = "\x00commit\x00" // not in synchronous_commit
	l.mu.Unlock()
	if err := insert(t.Context(), db, "", "4"); !errors.Is(err, ErrDown) {
		t.Errorf("cut with the answer to a commit: %v", err)
	}
	l.pass()
	s.breaker.recordSuccess()
	// The transaction may have been committed or not, but not in part.
	testkit.Check(t, insert(t.Context(), direct.Open(notes(1)), "", "5"))
	if err := insert(t.Context(), db, "", "6"); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// If a caller stops waiting, the connection stays open and the transaction is rolled back. If
// attache closed the connection, pgbouncer would close one too, and a slow server would be busy
// with connecting. A connection that has not answered for a long time is replaced.
func testConnectionOutlivesItsCallers(t *testing.T, cluster *pgtest.Cluster) {
	direct, l, db := openOverLink(t, cluster)
	s := db.server
	check(t, insert(t.Context(), db, "", "1"))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	err := db.In(ctx, Scope{}, func(tx *Tx) error {
		l.hold()
		time.AfterFunc(50*time.Millisecond, leave)
		_, err := tx.Exec(`INSERT INTO notes (tenant, id, n) VALUES ('', '2', 0)`)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up within a transaction: %v", err)
	}
	ctx, leave = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if err := insert(ctx, db, "", "3"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that gave up before it had the connection: %v", err)
	}
	s.o.Timeouts.All = 50 * time.Millisecond
	for range openAfter {
		_ = insert(t.Context(), db, "", "4")
	}
	s.o.Timeouts.All = slow.All
	if s.breaker.admit() == nil {
		t.Error("the breaker is closed although the server does not answer")
	}
	s.breaker.recordSuccess()
	l.pass()
	if err := insert(t.Context(), db, "", "5"); err != nil {
		t.Errorf("when the server answers again: %v", err)
	}
	if n, connections := count(t, direct.Open(notes(1)), Scope{}), len(l.accepted); n != 2 || connections != 1 {
		t.Errorf("%d rows and %d connections; want 2 and 1", n, connections)
	}

	s.o.Timeouts.Answer = 50 * time.Millisecond
	l.hold()
	if err := insert(t.Context(), db, "", "6"); !errors.Is(err, ErrDown) {
		t.Errorf("a server that does not answer: %v", err)
	}
	s.o.Timeouts.Answer = slow.Answer
	<-l.accepted
	next := make(chan error)
	go func() { next <- insert(t.Context(), db, "", "7") }()
	<-l.accepted
	l.pass()
	if err := <-next; err != nil {
		t.Errorf("on the connection after it: %v", err)
	}
}

// A process that stops within a transaction, as on a laptop that is suspended, does not keep others
// from the rows that it has locked.
func testStoppedProcess(t *testing.T, cluster *pgtest.Cluster) {
	url := cluster.Database()
	others := connect(t, ServerOptions{URL: url})
	migrate(t, others, notes(1))
	db := others.Open(notes(1))
	check(t, insert(t.Context(), db, "", "1"))
	const lock = `UPDATE notes SET n = n + 1`
	o := slow
	o.Answer = 100 * time.Millisecond
	stopped := connect(t, ServerOptions{URL: url, Timeouts: o}).Open(notes(1))
	err := stopped.In(t.Context(), Scope{}, func(tx *Tx) error {
		if _, err := tx.Exec(lock); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := db.Exec(ctx, Scope{}, lock); err != nil {
			t.Errorf("another process could not change the row: %v", err)
		}
		return nil
	})
	if err == nil {
		t.Error("the transaction of the process that had stopped was committed")
	}
}

// An urgent transaction uses the server even if the breaker is open.
func testUrgent(t *testing.T, cluster *pgtest.Cluster) {
	url := cluster.Database()
	s := connect(t, ServerOptions{URL: url})
	migrate(t, s, notes(1))
	for range openAfter {
		s.breaker.recordFailure(errors.New("no answer"))
	}
	for _, try := range []struct{ urgent, down bool }{{false, true}, {true, false}, {false, false}} {
		err := s.Open(notes(1)).In(t.Context(), Scope{Urgent: try.urgent}, func(*Tx) error { return nil })
		if errors.Is(err, ErrDown) != try.down || !try.down && err != nil {
			t.Errorf("urgent %t: %v", try.urgent, err)
		}
	}
}

// After two failures callers no longer wait for a server, and after a pause they try it again.
func testBreaker(t *testing.T, cluster *pgtest.Cluster) {
	url := cluster.Database()
	migrate(t, connect(t, ServerOptions{URL: url}), notes(1))
	l, over := newLink(t, cluster, url)
	var reports []bool
	time0 := &clock{now: time.Unix(0, 0)}
	s := connect(t, ServerOptions{URL: over, Timeouts: slow, Tell: func(err error) { reports = append(reports, err == nil) }, BreakerNow: time0.read})
	db := s.Open(notes(1))
	tries := 0
	try := func() error {
		return db.In(t.Context(), Scope{}, func(tx *Tx) error {
			tries++
			return tx.Row(`SELECT 1`).Scan(new(int))
		})
	}
	check(t, try())
	// The server accepts connections but does not answer: the timeout of the transaction applies.
	s.o.Timeouts.All = 100 * time.Millisecond
	l.hold()
	for range openAfter {
		if err := try(); !errors.Is(err, ErrDown) {
			t.Errorf("a server that does not answer: %v", err)
		}
	}
	s.o.Timeouts.All = slow.All
	l.pass()
	l.cut()
	tries = 0
	if err := try(); !errors.Is(err, ErrDown) || tries > 0 {
		t.Errorf("after two failures the server was used: %v", err)
	}
	time0.pass(firstOpen)
	if err := try(); err != nil || tries != 1 {
		t.Errorf("a second later: %v, after %d tries", err, tries)
	}
	// A statement that the server cancels after its timeout counts as a failure too.
	s.o.Timeouts.Statement = 50 * time.Millisecond
	err := db.In(t.Context(), Scope{}, func(tx *Tx) error { return tx.Row(`SELECT pg_sleep(600)`).Scan(new(string)) })
	if !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("a statement that takes too long: %v", err)
	}
	// A caller that gives up is no failure of the server.
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if err := db.In(cancelled, Scope{}, func(*Tx) error { return nil }); errors.Is(err, ErrDown) {
			t.Errorf("a caller that gave up: %v", err)
		}
	}
	if len(reports) != 2 || reports[0] || !reports[1] {
		t.Errorf("reports: %v, want one failure and one recovery", reports)
	}
	// The same while the breaker is open, and for a caller that waits for the connections of its own process: the
	// next caller is admitted.
	for range openAfter {
		s.breaker.recordFailure(io.EOF)
	}
	time0.pass(longestOpen)
	for s.pending.Load() > 0 { // connections that were cut
		time.Sleep(time.Millisecond)
	}
	_ = db.In(cancelled, Scope{}, func(*Tx) error { return nil })
	s.o.Timeouts.All = 50 * time.Millisecond
	for range cap(s.slots) {
		s.slots <- struct{}{}
	}
	if err := try(); !errors.Is(err, ErrDown) || !errors.Is(err, errBusy) {
		t.Errorf("while all connections are in use: %v", err)
	}
	for range cap(s.slots) {
		<-s.slots
	}
	s.o.Timeouts = slow
	if err := try(); err != nil {
		t.Errorf("after callers that gave up: %v", err)
	}
}

// An open breaker admits one caller after 1, 2, … 30 s, and in a process with many connections
// sooner, because more clients wait.
func TestBreakerBacksOff(t *testing.T) {
	for connections, waits := range map[int][]time.Duration{1: {1, 2, 4, 8, 16, 30, 30}, 10: {1, 2, 3, 3}} {
		c := &clock{now: time.Unix(0, 0)}
		b := &connect(t, ServerOptions{URL: "postgres://u@localhost/d", Connections: connections, BreakerNow: c.read}).breaker
		for range openAfter {
			b.recordFailure(io.EOF)
		}
		for _, wait := range waits {
			c.pass(wait*time.Second - 1)
			if b.admit() == nil {
				t.Errorf("%d connections: a caller is admitted before %d s", connections, wait)
			}
			c.pass(1)
			if b.admit() != nil || b.admit() == nil {
				t.Errorf("%d connections: after %d s not exactly one caller is admitted", connections, wait)
			}
			b.recordFailure(io.EOF)
		}
		c.pass(longestOpen)
		if b.admit() != nil {
			t.Error("no caller is admitted")
		}
		b.abandon()
		if b.admit() != nil {
			t.Error("after one gave up no caller is admitted")
		}
		b.recordSuccess()
		if b.admit() != nil {
			t.Error("it is open after a success")
		}
	}
}

// A read-only connection is not used again. Such a connection keeps the old default_transaction_read_only when that
// of its role changes, and stays with a primary that has become read-only.
func testReadOnlyConnection(t *testing.T, cluster *pgtest.Cluster) {
	s := connect(t, ServerOptions{URL: cluster.Database(), Connections: 1})
	migrate(t, s, notes(1))
	db := s.Open(notes(1))
	for i, change := range []func(id string) error{
		func(id string) error { return insert(t.Context(), db, "", id) },
		func(id string) error {
			_, err := db.Exec(t.Context(), Scope{}, `INSERT INTO notes (tenant, id, n) VALUES ('', ?1, 0)`, id)
			return err
		},
	} {
		if _, err := db.Exec(t.Context(), Scope{}, `SET default_transaction_read_only = on`); err != nil {
			t.Fatal(err)
		}
		id := string(rune('a' + i))
		if err := change(id); !errors.Is(err, ErrDown) {
			t.Errorf("a change on a connection that takes none: %v", err)
		}
		if err := change(id); err != nil {
			t.Errorf("the next change: %v", err)
		}
	}
}

// A connection to another machine must verify the server's certificate.
func TestConnectionProblems(t *testing.T) {
	for url, ok := range map[string]bool{
		"postgres:///d?host=/run": true, "postgres://u@localhost/d": true, "postgres://u@127.0.0.1/d": true, "postgres://u@[::1]/d": true,
		"postgres://u@db.example/d": false, "postgres://u@db.example/d?sslmode=require": false, "postgres://u@db.example/d?sslmode=disable": false,
		"postgres://u@db.example/d?sslmode=verify-full": true, "postgres://u@localhost,db.example/d": false,
	} {
		if got := connect(t, ServerOptions{URL: url}).connectionProblems(); (len(got) == 0) != ok {
			t.Errorf("%s: %q", url, got)
		}
	}
}

// No error contains the password.
func TestURL(t *testing.T) {
	for url, ok := range map[string]bool{
		"postgres://u:hunter2@h/d": true, "postgresql://u:hunter2@h:5433/d?sslmode=require": true, "postgres:///d?host=/run": true,
		"mysql://u:hunter2@h/d": false, "hunter2": false, "postgres://u:hunter2@h:x/d": false, "postgres://u:hunter2%@h/d": false, "postgres://u:hunter2@h/d?sslmode=hunter2": false,
		"postgres://u:p@hunter2@h/d": false, "postgres://u:p@x,hunter2@h/d": false, "postgres://u:1/hunter2@h/d": false, "postgres://u:1?p@hunter2@h/d": false, "postgres://u@h/d?user=a@b": true,
	} {
		err := CheckURL(url)
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	const absent = "/nonexistent/ca.crt"
	if err := CheckURL("postgres://u:hunter2@h/d?sslmode=verify-full&sslrootcert=" + absent); err == nil || !strings.Contains(err.Error(), absent) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := CheckURL("postgres://u:hunter2@h/d?sslmode=verify-full&sslcert=" + absent); err == nil || !strings.Contains(err.Error(), "certificate, key or service cannot be used") {
		t.Errorf("a certificate without a key: %v", err)
	}
	for hosts, want := range map[string]string{
		"h": "h:5432", "[::1]:5433": "[::1]:5433", "a:5433,b:5434": "a:5433, b:5434", "a,b": "a:5432, b:5432",
	} {
		got := connect(t, ServerOptions{URL: "postgres://u:hunter2@" + hosts + "/d"}).Address()
		if got != `PostgreSQL database "d" of `+want {
			t.Errorf("the address is shown as %q", got)
		}
	}
}

// If thousands of processes used a server at the same moment every ten seconds, they would wait
// for each other, time out, and open their breakers.
func TestVersionChangesAtAnotherTimeInEachProcess(t *testing.T) {
	const every = 10 * time.Second
	quarters := map[time.Duration]bool{}
	for range 100 {
		s := connect(t, ServerOptions{URL: "postgres://nobody@127.0.0.1/none"})
		quarters[s.phase%every/(every/4)] = true
	}
	if len(quarters) != 4 {
		t.Errorf("the versions of 100 processes change in %d quarters of the interval", len(quarters))
	}
}

// A revocation that waits for a row that another transaction has locked ended after 10 seconds, the default of
// Answer, with the error that the database is not available.
func TestPersonTimeouts(t *testing.T) {
	if o := PersonTimeouts(); o.Answer < o.All {
		t.Errorf("a transaction is ended after %v, and may take %v", o.Answer, o.All)
	}
}
