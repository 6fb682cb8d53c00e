package fronts

import (
	"fmt"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
)

// Thousands of sessions of an ended front are released and deleted in parts, and no statement reads those of the others:
// it would exceed its timeout, and the front would not renew its lease.
func TestManySessions(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t)
	w.play("start a\nstart b\ncut a")
	a, b := w.fronts["a"], w.fronts["b"]
	all := database.Scope{Tenant: tenant}
	for _, of := range []struct {
		front string
		n     int
	}{{a.id, 2*batchSize + 1}, {b.id, 5000}, {"", 5000}} {
		_, err := b.db.Exec(t.Context(), all, `INSERT INTO front_sessions (tenant, server, id, principal, front, left_at, initialize, version, capabilities, level, subscriptions)
			SELECT '', 'many', ?2 || n, '', ?2, ?3, '{}', '', '', '', '[]' FROM generate_series(1, ?1) n`, of.n, of.front, w.now.UnixNano())
		testkit.Check(t, err)
	}
	_, err := b.db.Exec(t.Context(), all, `ANALYZE front_sessions`)
	testkit.Check(t, err)
	now := w.now.UnixNano()
	for _, s := range []struct {
		statement string
		args      []any
	}{
		{abandoned, []any{"", now}}, {releaseSome, []any{"", b.id, now, now + longestLease, batchSize}},
		{deleteIdle, []any{"", now, batchSize}}, {deleteFronts, []any{"", now}},
	} {
		databasetest.ReadsNoTable(t, b.db, all, "front_sessions", s.statement, s.args...)
	}
	expect := func(front string, want int) {
		t.Helper()
		var n int
		err := b.db.Row(t.Context(), all, `SELECT count(*) FROM front_sessions WHERE tenant = '' AND front = ?1`, front).Scan(&n)
		if err != nil || n != want {
			t.Errorf("%d sessions of the front %q, want %d (%v)", n, front, want, err)
		}
	}
	sweep := func() {
		t.Helper()
		b.renewed = sweepEvery
		if _, err := b.Renew(t.Context()); err != nil {
			t.Error(err)
		}
	}
	w.now = w.now.Add(2 * lease)
	_, err = b.Renew(t.Context())
	testkit.Check(t, err)
	sweep()
	expect(a.id, 0)
	expect("", 5000+2*batchSize+1)
	w.now = w.now.Add(b.o.Idle - time.Second)
	_, err = b.Renew(t.Context())
	testkit.Check(t, err)
	sweep()
	expect(b.id, 5000)
	expect("", 0)
	if got := w.step([]string{"close", "b", "", ""}); got != "" {
		t.Fatal(fmt.Sprint(got))
	}
}

// A front that ends releases all of its sessions, however many they are.
func TestCloseManySessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.play("start a\nstart b")
	all := database.Scope{Tenant: tenant}
	_, err := w.fronts["a"].db.Exec(t.Context(), all, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5 * ?2)
		INSERT INTO front_sessions (tenant, server, id, principal, front, initialize, version, capabilities, level, subscriptions)
		SELECT '', 'many', n, '', ?1, '{}', '', '', '', '[]' FROM numbers`, w.fronts["a"].id, batchSize)
	testkit.Check(t, err)
	w.play("close a")
	var left int
	err = w.fronts["b"].db.Row(t.Context(), all, `SELECT count(*) FROM front_sessions WHERE front <> ''`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d sessions are not released (%v)", left, err)
	}
}

// A session that ends while Close waits for its row does not keep the others.
func TestSessionEndsDuringClose(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t)
	w.play("start a\nstart b")
	a, b := w.fronts["a"], w.fronts["b"]
	all := database.Scope{Tenant: tenant}
	_, err := b.db.Exec(t.Context(), all, `INSERT INTO front_sessions (tenant, server, id, principal, front, initialize, version, capabilities, level, subscriptions)
		SELECT '', 'many', n, '', ?2, '{}', '', '', '', '[]' FROM generate_series(1, ?1) n`, 2*batchSize, a.id)
	testkit.Check(t, err)
	closed := make(chan error, 1)
	testkit.Check(t, b.db.In(t.Context(), all, func(tx *database.Tx) error {
		_, err := tx.Exec(`DELETE FROM front_sessions WHERE id = '1'`)
		go func() { closed <- a.Close() }()
		for waits := false; err == nil && !waits && len(closed) == 0; {
			err = tx.Row(`SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
				WHERE locktype = 'transactionid' AND NOT granted AND datname = current_database())`).Scan(&waits)
		}
		return err
	}))
	testkit.Check(t, <-closed)
	var left int
	testkit.Check(t, b.db.Row(t.Context(), all, `SELECT count(*) FROM front_sessions WHERE front <> ''`).Scan(&left))
	if left != 0 {
		t.Errorf("%d sessions are not released", left)
	}
}
