package fronts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// A world has the fronts of a test, on one machine, and a clock.
type world struct {
	*testing.T
	dir    string
	server func() *database.Server // nil for a file
	now    time.Time
	fronts map[string]*Front
}

func newWorld(t *testing.T, server func() *database.Server) *world {
	return &world{T: t, server: server, dir: t.TempDir(), now: time.Unix(1_800_000_000, 0), fronts: map[string]*Front{}}
}

// newPostgresWorld returns a world with a PostgreSQL database of its own.
func newPostgresWorld(t *testing.T) *world {
	url := databasetest.Migrate(t, pgtest.New(t, os.Getenv).Database(), Schema())
	return newWorld(t, func() *database.Server { return databasetest.Connect(t, url) })
}

// play runs the lines of a script:
//
//	start FRONT [SERVICE]        start a process
//	open FRONT [SERVICE]         start a process whose first renewal fails
//	close|kill|drain|cut FRONT   end it orderly; kill it; drain it; make it a front of another
//	                             machine, whose lock this one cannot see
//	renew FRONT [lapsed]
//	lapse FRONT                  let its next save or take renew the lease
//	wait TIME                    let time pass without renewals
//	save|take|leave|end|elsewhere FRONT KEY [RESULT]
//
// KEY is an id, or id@principal. RESULT is none, elsewhere, or an address.
func (w *world) play(script string) {
	w.Helper()
	for n, line := range strings.Split(strings.TrimSpace(script), "\n") {
		f := append(strings.Fields(line), "", "", "", "")
		if got := w.step(f); got != f[3] {
			w.Fatalf("line %d: %s: got %q", n+1, line, got)
		}
	}
}

func (w *world) step(f []string) string {
	front := w.fronts[f[1]]
	id, principal, _ := strings.Cut(f[2], "@")
	key := sessions.NewKey(id, principal)
	var s sessions.Store
	if front != nil {
		s = front.Sessions("server")
	}
	ctx := w.Context()
	var err error
	switch f[0] {
	case "start", "open":
		o := Options{
			Path: filepath.Join(w.dir, "sessions.db"), Locks: w.dir, Address: f[1], Service: f[2], Idle: time.Hour,
			Now: func() time.Time { return w.now },
		}
		if w.server != nil {
			o.Server = w.server()
		}
		w.fronts[f[1]], err = Open(ctx, o)
		if err == nil && f[0] == "start" {
			_, err = w.fronts[f[1]].Renew(ctx)
		}
		w.Cleanup(func() { _ = w.fronts[f[1]].Close() })
	case "close":
		err = front.Close()
	case "kill":
		err = front.lock.Unlock()
	case "cut":
		front.host = "elsewhere"
		err = front.db.In(ctx, database.Scope{Tenant: tenant}, func(t *database.Tx) error {
			_, err := t.Exec(`UPDATE fronts SET host = ?1 WHERE id = ?2`, front.host, front.id)
			return err
		})
	case "drain":
		err = front.Drain(ctx)
	case "renew":
		lapsed, err := front.Renew(ctx)
		if lapsed != (f[2] == "lapsed") || err != nil {
			return fmt.Sprint(lapsed, err)
		}
	case "lapse":
		front.at.Store(new(time.Time))
	case "wait":
		d, err := time.ParseDuration(f[1])
		w.now = w.now.Add(d)
		return text(err)
	case "save":
		err = s.Save(ctx, key, saved(f[2]))
	case "take":
		var got sessions.Session
		if got, err = s.Take(ctx, key); err == nil && !reflect.DeepEqual(got, saved(f[2])) {
			return fmt.Sprint(got)
		}
	case "leave":
		err = s.Leave(ctx, key, false)
	case "end":
		err = s.Leave(ctx, key, true)
	case "elsewhere":
		at, err := s.Elsewhere(ctx, key)
		return at + text(err)
	default:
		return "unknown command"
	}
	return text(err)
}

// empty deletes all rows of a database that other tests use.
func (w *world) empty() {
	w.Helper()
	for _, f := range w.fronts {
		err := f.db.In(w.Context(), database.Scope{Tenant: tenant}, func(t *database.Tx) error {
			_, err := t.Exec(`DELETE FROM fronts`)
			if err == nil {
				_, err = t.Exec(`DELETE FROM front_sessions`)
			}
			return err
		})
		if err == nil || w.server == nil {
			return // no other test uses the file
		}
	}
}

func text(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, sessions.ErrNone):
		return "none"
	case errors.Is(err, sessions.ErrElsewhere):
		return "elsewhere"
	}
	return err.Error()
}

// saved returns the stored session with this name in a script.
func saved(name string) sessions.Session {
	return sessions.Session{
		Initialize: `{"of":"` + strings.ToUpper(name) + `\u0000"}`, Version: `"2025-06-18"`, Capabilities: `{}`, Level: `{"level":"error"}`,
		Subscriptions: []string{`{"uri":"a"}`, `{"uri":"b"}`},
	}
}

// tests returns the tests for both engines.
func tests() map[string]func(w *world) {
	return map[string]func(w *world){"Sessions": testSessions, "EndAtOnce": testEndAtOnce, "TakenOnce": testTakenOnce, "TakenDuringSweep": testTakenDuringSweep, "Foreign": testForeign}
}

func TestOnSQLite(t *testing.T) {
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) { test(newWorld(t, nil)) })
	}
}

func TestOnPostgreSQL(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.Database()
			connect := func() *database.Server { return databasetest.Connect(t, url) }
			if _, err := connect().Migrate(t.Context(), []database.Schema{Schema()}); err != nil {
				t.Fatal(err)
			}
			test(newWorld(t, connect))
		})
	}
}

// testSessions plays each script with its own fronts.
func testSessions(w *world) {
	for _, row := range []struct{ name, script string }{
		{"a session belongs to its principal", `
			start a
			save a 1@ada
			take a 1@bob none
			take a 1 none
			take a 1@ada
			save a 1@bob elsewhere
			take a 1@ada
			end a 1@bob
			end a 1@ada
			take a 1@ada none`},
		{"a front that is alive keeps its sessions", `
			start a
			start b
			save a 1
			take b 1 elsewhere
			elsewhere b 1 a
			save b 1 elsewhere
			leave b 1
			end b 1
			take b 1 elsewhere
			leave a 1
			take b 1
			take a 1 elsewhere
			elsewhere a 1 b`},
		{"a closed front releases its sessions", `
			start a
			start b
			save a 1
			close a
			take b 1`},
		{"a killed process", `
			start a
			start b
			save a 1
			take b 1 elsewhere
			kill a
			elsewhere b 1
			take b 1`},
		{"a front whose first renewal failed", `
			start a
			save a 1
			open b
			close a
			take b 1
			open c
			save c 2
			start d
			take d 1 elsewhere
			take d 2 elsewhere
			renew b
			renew c`},
		{"a machine that failed", `
			start a
			cut a
			start b
			save a 1
			wait 19s
			renew b
			take b 1 elsewhere
			wait 1s
			take b 1`},
		{"a renewed lease", `
			start a
			cut a
			start b
			save a 1
			wait 15s
			renew a
			renew b
			wait 15s
			renew b
			take b 1 elsewhere
			renew a`},
		{"a front that did not renew for a while", `
			start a
			cut a
			start b
			save a 1
			save a 2
			wait 19s
			renew b
			wait 19s
			renew b
			take b 1
			renew a lapsed
			take a 1 elsewhere
			take a 2
			save a 1 elsewhere
			renew a`},
		{"a session is saved before the lapsed lease is renewed", `
			start a
			cut a
			start b
			save a 1
			save a 2
			wait 19s
			renew b
			wait 19s
			renew b
			take b 1
			lapse a
			save a 2
			take b 2 elsewhere
			renew a lapsed
			take a 1 elsewhere
			renew a`},
		{"a swept front renews", `
			start a
			cut a
			start b
			save a 1
			wait 59m
			start c
			renew a lapsed
			take a 1`},
		{"sessions without requests", `
			start a
			save a 1
			save a 2
			leave a 1
			wait 59m
			start b
			take b 1
			leave b 1
			wait 1h1m
			start b
			take b 1 none
			take b 2 none`},
		{"a session taken in time", `
			start a
			save a 1
			close a
			wait 59m
			start b
			take b 1
			leave b 1
			wait 59m
			start c
			take c 1`},
		{"the clock is set back", `
			start a
			cut a
			save a 1
			wait -1h
			start b
			take b 1
			renew a lapsed
			renew a held`},
		{"elsewhere", `
			start a git
			elsewhere a 1
			start b sentry
			elsewhere a 1
			start c git
			elsewhere a 1 c
			save c 1
			start d git
			elsewhere a 1 c
			elsewhere d 1 c
			drain c
			elsewhere a 1 c
			elsewhere a 2 d
			leave c 1
			elsewhere a 1 d
			kill d
			elsewhere a 1
			elsewhere c 1 a`},
	} {
		w.Run(row.name, func(t *testing.T) {
			one := newWorld(t, w.server)
			defer one.empty()
			one.play(row.script)
		})
	}
}

// The servers of a front do not share sessions.
func TestServers(t *testing.T) {
	w := newWorld(t, nil)
	w.play(`start a
		save a 1`)
	if _, err := w.fronts["a"].Sessions("other").Take(t.Context(), sessions.NewKey("1", "")); !errors.Is(err, sessions.ErrNone) {
		t.Error(err)
	}
}

// Sessions that end at the same time are deleted in batches, and no other sessions are.
func testEndAtOnce(w *world) {
	w.play("start a\nstart b\nsave b 0")
	const ended = 3*mostEndings + 1
	a := w.fronts["a"].Sessions("server")
	for i := 1; i <= 2*ended; i++ {
		w.play(fmt.Sprint("save a ", i))
	}
	var all sync.WaitGroup
	for i := range ended + 1 { // also one of another front
		all.Go(func() {
			if err := a.Leave(w.Context(), sessions.NewKey(fmt.Sprint(i), ""), true); err != nil {
				w.Error(err)
			}
		})
	}
	all.Wait()
	w.play("take b 0")
	for i := 1; i <= 2*ended; i++ {
		want := " none"
		if i > ended {
			want = ""
		}
		w.play(fmt.Sprint("take a ", i, want))
	}
}

// SQLite reads only the sessions that it deletes.
func TestEndQueryPlan(t *testing.T) {
	w := newWorld(t, nil)
	w.play("start a")
	args := make([]any, 3+mostEndings)
	err := w.fronts["a"].db.In(t.Context(), database.Scope{Tenant: tenant}, func(tx *database.Tx) error {
		var plan string
		err := tx.Row(`EXPLAIN QUERY PLAN `+deleteEnded, args...).Scan(new(int), new(int), new(int), &plan)
		if !strings.Contains(plan, "(tenant=? AND server=? AND id=?)") {
			t.Error(plan)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// All callers of a batch get its error.
func TestEndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Front: &Front{db: &database.DB{}}}
		e, first := s.endings.join("1")
		if !first {
			t.Fatal("not the first")
		}
		failed := errors.New("failed")
		for range mostEndings - 1 {
			go func() {
				if err := s.end(t.Context(), "2"); err != failed {
					t.Error(err)
				}
			}()
		}
		s.endings.wait(t.Context(), e)
		if other, first := s.endings.join("3"); other == e || !first {
			t.Error("another session joined a full batch")
		}
		e.err = failed
		close(e.over)
		synctest.Wait() // those that joined have returned
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.end(ctx, "4"); err != context.Canceled {
			t.Error(err)
		}
	})
}

// Of many fronts that take a session at the same time only one gets it.
func testTakenOnce(w *world) {
	w.play("start a")
	for _, name := range []string{"b", "c", "d", "e"} {
		w.play("start " + name)
	}
	for i := range 20 {
		id := fmt.Sprint(i)
		w.play("save a " + id + "\nleave a " + id)
		got := make(chan error)
		for _, name := range []string{"b", "c", "d", "e"} {
			go func() {
				_, err := w.fronts[name].Sessions("server").Take(context.Background(), sessions.NewKey(id, ""))
				got <- err
			}()
		}
		taken := 0
		for range 4 {
			switch err := <-got; {
			case err == nil:
				taken++
			case !errors.Is(err, sessions.ErrElsewhere):
				w.Error(err)
			}
		}
		if taken != 1 {
			w.Fatalf("%d fronts took session %s", taken, id)
		}
	}
}

// A front that removes the row of an ended front leaves a session to the front that is taking it meanwhile.
func testTakenDuringSweep(w *world) {
	w.play("start a\nsave a 1\nstart b\nstart c\nkill a\nwait 2m\nrenew b lapsed\nrenew c lapsed")
	b, c := w.fronts["b"], w.fronts["c"]
	c.renewed = sweepEvery // so it sweeps
	swept := make(chan error, 1)
	err := b.db.In(w.Context(), database.Scope{Tenant: tenant}, func(t *database.Tx) error {
		_, err := t.Exec(`UPDATE front_sessions SET front = ?1`, b.id) // as Take
		go func() {
			_, err := c.Renew(context.Background())
			swept <- err
		}()
		time.Sleep(100 * time.Millisecond)
		return err
	})
	if err := errors.Join(err, <-swept); err != nil {
		w.Fatal(err)
	}
	w.play("take c 1 elsewhere\ntake b 1")
}

// A session whose params another program has changed so that a server would read further frames or members does not
// go on.
func testForeign(w *world) {
	w.play("start a\nstart b")
	for i, set := range []string{
		`initialize = '{"a":' || chr(10) || '{}}'`, `initialize = '{"a":' || chr(13) || '{}}'`, `initialize = ''`,
		`level = '{},"method":"tools/call"'`, `level = '{}}' || chr(10) || '{'`,
		`subscriptions = '["{},\"id\":1"]'`, `subscriptions = '["{\"uri\":\n1}"]'`,
	} {
		if w.server == nil {
			set = strings.ReplaceAll(set, "chr(", "char(")
		}
		id := fmt.Sprint(i)
		w.play("save a " + id + "\nleave a " + id)
		a := w.fronts["a"]
		if _, err := a.db.Exec(w.Context(), database.Scope{Tenant: tenant}, `UPDATE front_sessions SET `+set+` WHERE tenant = ?1 AND id = ?2`, tenant, sessions.NewKey(id, "").ID); err != nil {
			w.Fatal(set, err)
		}
		w.play("take b " + id + " none")
	}
}

// A killed process stops listening before it releases its lock, so Take waits a moment.
func TestDying(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	l.Close()
	w := newWorld(t, nil)
	at := l.Addr().String()
	w.play("start " + at + "\nstart b\nsave " + at + " 1")
	taken := make(chan error)
	go func() {
		_, err := w.fronts["b"].Sessions("server").Take(context.Background(), sessions.NewKey("1", ""))
		taken <- err
	}()
	w.play("kill " + at)
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

// An ended front leaves nothing in the database or in the directory, and only the user can read
// the files.
func TestNothingStays(t *testing.T) {
	w := newWorld(t, nil)
	w.play(`start a
		save a secret-id
		end a secret-id
		close a
		start b
		kill b
		wait 2h
		start c`)
	for _, query := range []string{`SELECT count(*) FROM front_sessions`, `SELECT count(*) - 1 FROM fronts`} {
		var n int
		err := w.fronts["c"].db.In(t.Context(), database.Scope{Tenant: tenant}, func(tx *database.Tx) error { return tx.Row(query).Scan(&n) })
		if err != nil || n != 0 {
			t.Error(query, n, err)
		}
	}
	all, err := os.ReadDir(w.dir)
	testkit.Check(t, err)
	for _, entry := range all {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Error(entry.Name(), info.Mode(), err)
		}
		if b, _ := os.ReadFile(filepath.Join(w.dir, entry.Name())); strings.Contains(string(b), "secret-id") && entry.Name() != "sessions.db-wal" {
			t.Error(entry.Name(), "has the id of a session")
		}
		if strings.HasSuffix(entry.Name(), ".lock") && !strings.HasPrefix(entry.Name(), w.fronts["c"].id) {
			t.Error(entry.Name(), "is the lock of a front that has ended")
		}
	}
}

// The id of a front in the database does not lead to a lock file of another program.
func TestLocksOfOthers(t *testing.T) {
	w := newWorld(t, nil)
	other := filepath.Join(t.TempDir(), "cargo.lock")
	testkit.Check(t, os.WriteFile(other, nil, 0o600))
	w.play("start a")
	a := w.fronts["a"]
	id, err := filepath.Rel(w.dir, strings.TrimSuffix(other, ".lock"))
	if err == nil {
		_, err = a.db.Exec(t.Context(), database.Scope{Tenant: tenant},
			`INSERT INTO fronts (tenant, id, host, address, service, until) VALUES (?1, ?2, ?3, '', '', 0)`, tenant, id, a.host)
	}
	testkit.Check(t, err)
	a.renewed = sweepEvery // so it sweeps
	if _, err := a.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// A front whose lease is valid saves and takes sessions while it renews the lease: if the database does not
// answer, a request waits for its own statement only.
func TestSaveDuringRenewal(t *testing.T) {
	w := newWorld(t, nil)
	if got := w.step([]string{"start", "a", ""}); got != "" {
		t.Fatal(got)
	}
	front := w.fronts["a"]
	front.renewing.Lock()
	defer front.renewing.Unlock()
	saved := make(chan string, 1)
	go func() { saved <- w.step([]string{"save", "a", "1"}) }()
	select {
	case got := <-saved:
		if got != "" {
			t.Error(got)
		}
	case <-time.After(time.Minute): // only if it fails
		t.Error("Save waits for the renewal")
	}
}

// Fronts take sessions of an ended front without waiting for each other.
func TestTakenTogether(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t)
	w.play("start a\nstart b\nstart c\nsave a 1\nkill a")
	b := w.fronts["b"].Sessions("server").(*store)
	err := b.db.In(t.Context(), database.Scope{Tenant: tenant}, func(tx *database.Tx) error {
		r, err := b.find(tx, sessions.NewKey("1", ""))
		if err == nil {
			err = b.lockLease(tx, r.owner)
		}
		w.play("take c 1")
		return err
	})
	testkit.Check(t, err)
}
