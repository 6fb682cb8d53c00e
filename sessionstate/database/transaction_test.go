package database

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// What a transaction or a migration sets holds only for itself: through pgbouncer, the next one on the
// connection may be another client's.
func testSettingsOfTransactions(t *testing.T, cluster *pgtest.Cluster) {
	s := connect(t, ServerOptions{URL: cluster.Database() + "&options=-c%20statement_timeout%3D9min", Connections: 1})
	s.sql.SetConnMaxIdleTime(0) // keep the connection
	const settings = `SELECT concat_ws(' ', current_setting('attache.tenant', true), current_setting('attache.all_tenants', true),
		current_setting('synchronous_commit'), current_setting('statement_timeout'), current_setting('lock_timeout'),
		current_setting('idle_in_transaction_session_timeout'), current_setting('client_min_messages'),
		current_setting('transaction_isolation'), current_setting('transaction_read_only'),
		(SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'))`
	check := func(when string, want string, read func() (string, error)) {
		t.Helper()
		if got, err := read(); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", when, got, err, want)
		}
	}
	outside := func() (got string, err error) { return got, s.sql.QueryRowContext(t.Context(), settings).Scan(&got) }
	none := "on 9min 0 0 notice read committed off 0"
	check("before", none, outside)
	step := Schema{Name: "notes", Files: fstest.MapFS{"schema/1.sql": &fstest.MapFile{Data: []byte(`CREATE TABLE used AS SELECT (` + settings + `) AS settings`)}}}
	migrate(t, s, step)
	check("after a migration", none, outside)
	db := s.Open(step)
	within := func(scope Scope) func() (string, error) {
		return func() (got string, err error) {
			return got, db.In(t.Context(), scope, func(tx *Tx) error { return tx.Row(settings).Scan(&got) })
		}
	}
	check("a migration", "on 0 5s 2min warning read committed off 1", func() (got string, err error) {
		return got, db.Row(t.Context(), Scope{}, `SELECT settings FROM used`).Scan(&got)
	})
	check("a transaction", "acme off on 1min 1min 2min notice read committed off 0", within(Scope{Tenant: "acme"}))
	check("a relaxed one of all tenants", " on off 1min 1min 2min notice read committed off 0", within(Scope{AllTenants: true, Relaxed: true}))
	// A setting of attache that was set once is empty, and no longer absent.
	check("after a relaxed one", "  "+none, outside)
	check("a view", " off on 1min 1min 2min notice read committed on 0", func() (got string, err error) {
		return got, db.View(t.Context(), Scope{}, func(tx *Tx) error { return tx.Row(settings).Scan(&got) })
	})
	check("a single statement", "acme off on 1min 1min 2min notice read committed off 0", func() (got string, err error) {
		return got, db.Row(t.Context(), Scope{Tenant: "acme"}, settings).Scan(&got)
	})
	check("after all", "  "+none, outside)
}

// Exec and Row return what the server returned. A statement that may have been executed is not
// repeated, and a transaction whose statement failed is not committed.
func testSingleStatements(t *testing.T, cluster *pgtest.Cluster) {
	direct, l, db := openOverLink(t, cluster)
	ctx := t.Context()
	const add, sum = `UPDATE notes SET n = n + ?1`, `SELECT sum(n)::bigint FROM notes`
	for _, id := range []string{"1", "2"} {
		check(t, insert(ctx, db, "", id))
	}
	if n, err := db.Exec(ctx, Scope{}, add, 1); n != 2 || err != nil {
		t.Errorf("Exec = %d, %v", n, err)
	}
	var n int
	row := db.Row(ctx, Scope{}, sum)
	if err := row.Scan(&n); n != 2 || err != nil || row.Now().IsZero() {
		t.Errorf("Row = %d at %v, %v", n, row.Now(), err)
	}
	if n, err := db.Exec(ctx, Scope{}, `UPDATE nothing SET n = 1`); n != 0 || err == nil || errors.Is(err, ErrDown) {
		t.Errorf("Exec of a statement that fails = %d, %v", n, err)
	}
	err := db.In(ctx, Scope{}, func(tx *Tx) error {
		_, _ = tx.Exec(`UPDATE nothing SET n = 1`)
		return nil
	})
	if err == nil {
		t.Error("a transaction whose statement failed was committed")
	}
	l.mu.Lock()
	l.cutOn = "UPDATE notes"
	l.mu.Unlock()
	if _, err := db.Exec(ctx, Scope{}, add, 1); !errors.Is(err, ErrDown) {
		t.Errorf("cut with the answer to a statement: %v", err)
	}
	l.pass()
	if err := direct.Open(notes(1)).Row(ctx, Scope{}, sum).Scan(&n); err != nil || n > 4 {
		t.Errorf("the sum is %d, %v: the statement was executed twice", n, err)
	}
}

// An operator learns of everything that makes the server unsafe or unusable.
func testProblems(t *testing.T, cluster *pgtest.Cluster) {
	for name, test := range map[string]struct {
		role, change string
		want         []string
	}{
		"the administrator":       {"postgres", `SELECT 1`, []string{`the role "postgres" passes row level security`}},
		"no row level security":   {"attache", `ALTER TABLE notes DISABLE ROW LEVEL SECURITY`, []string{"the table notes has no row level security"}},
		"its owner passes it":     {"attache", `ALTER TABLE notes NO FORCE ROW LEVEL SECURITY`, []string{"the table notes has no row level security"}},
		"may not read":            {"attache", `REVOKE SELECT ON notes FROM attache`, []string{"the role may not read and write the table notes"}},
		"may not insert":          {"attache", `REVOKE INSERT ON notes FROM attache`, []string{"the role may not read and write the table notes"}},
		"may not update":          {"attache", `REVOKE UPDATE ON notes FROM attache`, []string{"the role may not read and write the table notes"}},
		"may not delete":          {"attache", `REVOKE DELETE ON notes FROM attache`, []string{"the role may not read and write the table notes"}},
		"a table of others":       {"attache", `CREATE SCHEMA other CREATE TABLE theirs (tenant TEXT)`, nil},
		"a table without tenants": {"attache", `CREATE TABLE ours (id TEXT)`, nil},
	} {
		url := cluster.Database()
		migrate(t, connect(t, ServerOptions{URL: url}), notes(1))
		s := connect(t, ServerOptions{URL: strings.Replace(url, "user=attache", "user="+test.role, 1)})
		if _, err := s.Open(notes(1)).Exec(t.Context(), Scope{}, test.change); err != nil {
			t.Fatal(err)
		}
		got, err := s.Problems(t.Context(), []Schema{notes(1)})
		got = slices.DeleteFunc(got, func(p string) bool { return strings.HasPrefix(p, "fsync ") }) // off in tests
		ok := err == nil && len(got) == len(test.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.Contains(got[i], test.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}
