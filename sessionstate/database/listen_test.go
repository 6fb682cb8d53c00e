package database

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// A process receives notices of commits from other processes, even after the connection was cut
// or the server was killed.
func TestListen(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	t.Run("read-only", func(t *testing.T) { listenToReadOnlyServer(t, cluster) }) // first, while nobody else listens
	t.Run("dead", func(t *testing.T) { listenOverDeadConnection(t, cluster) })
	url := cluster.Database()
	sender := connect(t, ServerOptions{URL: url})
	migrate(t, sender, notes(1))
	l, over := newLink(t, cluster, url)
	listener := connect(t, ServerOptions{URL: over})
	received, other := make(chan string, 100), make(chan string, 100)
	listener.OnNotice(func(payload string) { received <- payload })
	stop := listener.OnNotice(func(payload string) { other <- payload })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		listener.Listen(ctx, slog.New(slog.DiscardHandler))
	}()
	wantNotice := func(want string) {
		t.Helper()
		if got := <-received; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	send := func(payload string, undo error) {
		t.Helper()
		send := func(tx *Tx) error { return errors.Join(tx.Notify(payload), undo) }
		err := sender.Open(notes(1)).In(t.Context(), Scope{}, send)
		for undo == nil && errors.Is(err, ErrDown) { // the cluster has just started
			time.Sleep(5 * time.Millisecond)
			err = sender.Open(notes(1)).In(t.Context(), Scope{}, send)
		}
		if !errors.Is(err, undo) {
			t.Fatal(err)
		}
	}
	wantNotice("")
	send("undone", errors.New("no"))
	send("first", nil)
	wantNotice("first")
	if a, b := <-other, <-other; a != "" || b != "first" {
		t.Errorf("the other listener received %q and %q", a, b)
	}
	stop()
	l.cut()
	wantNotice("")
	send("cut", nil)
	wantNotice("cut")
	cluster.Kill()
	cluster.Start()
	for got := ""; got != "last"; { // notices from before it listens again are lost
		select {
		case got = <-received:
			continue
		default:
		}
		send("last", nil)
		got = <-received
	}
	if len(other) > 0 {
		t.Errorf("the other listener received %q after stop", <-other)
	}
	cancel()
	<-done
}

// A dead connection is replaced.
func listenOverDeadConnection(t *testing.T, cluster *pgtest.Cluster) {
	l, over := newLink(t, cluster, cluster.Database())
	timeouts := slow
	timeouts.All = time.Second
	s := connect(t, ServerOptions{URL: over, Timeouts: timeouts})
	s.checkEvery = 10 * time.Millisecond
	received := make(chan string, 100)
	s.OnNotice(func(payload string) { received <- payload })
	go s.Listen(t.Context(), slog.New(slog.DiscardHandler))
	<-received
	connections := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.conns)
	}
	before := connections()
	l.hold()
	for connections() == before {
		time.Sleep(time.Millisecond)
	}
	l.pass()
	<-received
}

// If a server no longer takes changes, attache replaces the connection to it: the notices may come from another host now.
func listenToReadOnlyServer(t *testing.T, cluster *pgtest.Cluster) {
	admin := dial(t, cluster.URL("postgres", "postgres"))
	s := connect(t, ServerOptions{URL: cluster.Database()})
	s.checkEvery = 10 * time.Millisecond
	received := make(chan string, 100)
	s.OnNotice(func(payload string) { received <- payload })
	go s.Listen(t.Context(), slog.New(slog.DiscardHandler))
	<-received
	var listener int
	check(t, admin.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity WHERE application_name = 'attache'`).Scan(&listener))
	setReadOnly(t, admin, "on")
	for listens := true; listens; time.Sleep(time.Millisecond) {
		check(t, admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)`, listener).Scan(&listens))
	}
	setReadOnly(t, admin, "off")
	<-received
}

// pgbouncer tells a new client the settings that its first connection had. The server may no longer be read-only.
func TestListenBehindBouncer(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	url := cluster.Bouncer(t, os.Getenv)(cluster.Database())
	admin := dial(t, cluster.URL("postgres", "postgres"))
	for _, value := range []string{"on", "off"} {
		setReadOnly(t, admin, value)
		for got := ""; got != value; {
			check(t, dial(t, url).QueryRow(t.Context(), `SHOW default_transaction_read_only`, pgx.QueryExecModeExec).Scan(&got))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := connect(t, ServerOptions{URL: url}).listen(ctx, cancel); ctx.Err() == nil {
		t.Error(err)
	}
}

// dial opens a connection for the duration of the test.
func dial(t *testing.T, url string) *pgx.Conn {
	c, err := pgx.Connect(t.Context(), url)
	check(t, err)
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// setReadOnly sets default_transaction_read_only of a cluster to on or off. admin is a connection of its administrator.
func setReadOnly(t *testing.T, admin *pgx.Conn, value string) {
	for _, statement := range []string{`ALTER SYSTEM SET default_transaction_read_only = ` + value, `SELECT pg_reload_conf()`} {
		_, err := admin.Exec(t.Context(), statement)
		check(t, err)
	}
}

// Without a listener there is no connection.
func TestListenForNobody(t *testing.T) {
	connect(t, ServerOptions{URL: "postgres://u@127.0.0.1:1/d"}).Listen(t.Context(), slog.New(slog.DiscardHandler))
}

// On a file, Notify does nothing: processes on the same machine see changes of the file.
func TestNotifyOnFile(t *testing.T) {
	db, err := OpenFile(t.Context(), FileOptions{Path: t.TempDir() + "/notes.db", Wait: time.Minute, Schema: notes(1)})
	if err == nil {
		err = db.In(t.Context(), Scope{}, func(tx *Tx) error { return tx.Notify("keys") })
	}
	check(t, err)
	_ = db.Close()
}
