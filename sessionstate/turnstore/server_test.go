package turnstore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/statetest"
)

func TestTurnsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	url := databasetest.Migrate(t, cluster.Database(), Schema())
	connect := func(t *testing.T) *database.Server {
		t.Helper()
		cluster.Empty(url)
		return databasetest.Connect(t, url)
	}
	statetest.Run(t, func(t *testing.T, now func() time.Time) sessionstate.Turns {
		return opened(t, Options{Server: connect(t), Now: now})
	})
	t.Run("more sessions than the limit of a file", func(t *testing.T) {
		server := connect(t)
		var inserted int
		err := cluster.Ask(filepath.Base(strings.Split(url, "?")[0]), `WITH all_turns AS (INSERT INTO turns (tenant, key, used, closed)
			SELECT '', 'key ' || n, (extract(epoch FROM now()) * 1e9)::bigint, 1 FROM generate_series(1, 10050) n RETURNING 1) SELECT count(*) FROM all_turns`, &inserted)
		check(t, err)
		s := openedDB(t, Options{Server: server})
		if n, err := s.Of("").Sweep(t.Context(), time.Hour); n != 0 || err != nil {
			t.Errorf("Sweep = %d, %v; want all %d turns to stay", n, err, inserted)
		}
	})
	t.Run("a backlog is swept in parts", func(t *testing.T) {
		server := connect(t)
		var inserted int
		err := cluster.Ask(filepath.Base(strings.Split(url, "?")[0]), `WITH all_turns AS (INSERT INTO turns (tenant, key, used, closed)
			SELECT '', 'key ' || n, 0, 1 FROM generate_series(1, 20500) n RETURNING 1) SELECT count(*) FROM all_turns`, &inserted)
		check(t, err)
		s := openedDB(t, Options{Server: server}).Of("")
		take(t, s, "held", true)
		for _, want := range []int{20_000, 500, 0} {
			if n, err := s.Sweep(t.Context(), time.Hour); n != want || err != nil {
				t.Errorf("Sweep = %d, %v; want %d", n, err, want)
			}
		}
	})
	t.Run("a sweep does not read the table", func(t *testing.T) {
		db := openedDB(t, Options{Server: connect(t)}).db
		now, scope := time.Now().UnixNano(), database.Scope{}
		_, err := db.Exec(t.Context(), scope, `INSERT INTO turns (tenant, key, used)
			SELECT '', 'key ' || n, ?1 - n FROM (SELECT n * 7919 % 50000 AS n FROM generate_series(1, 50000) n) rows`, now)
		check(t, err)
		_, err = db.Exec(t.Context(), scope, `ANALYZE turns`)
		check(t, err)
		databasetest.ReadsNoTable(t, db, scope, "turns", deleteOldest, now, int64(sessionstate.Lease), now-25000, "", sweepBatch)
	})
	t.Run("a turn that is taken while a sweep waits for it stays", func(t *testing.T) {
		s := openedDB(t, Options{Server: connect(t)}).Of("")
		check(t, s.Settle(t.Context(), "a", sessionstate.Seen))
		swept := make(chan int, 1)
		check(t, s.in(t.Context(), func(tx *database.Tx, now int64) error {
			_, err := tx.Exec(`UPDATE turns SET used = ?1`, now+int64(time.Hour))
			go func() {
				n, err := s.Sweep(context.WithoutCancel(t.Context()), 0)
				if err != nil {
					t.Error(err)
				}
				swept <- n
			}()
			for waits := false; err == nil && !waits && len(swept) == 0; {
				err = tx.Row(`SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted)`).Scan(&waits)
			}
			return err
		}))
		if n := <-swept; n != 0 {
			t.Errorf("Sweep = %d", n)
		}
	})
	t.Run("row level security is on", func(t *testing.T) {
		problems, err := connect(t).Problems(t.Context(), []database.Schema{Schema()})
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "fsync") {
			t.Errorf("Problems = %q, %v; want only fsync, which is off in tests", problems, err)
		}
	})
	t.Run("tenants are apart", func(t *testing.T) { testTenants(t, openedDB(t, Options{Server: connect(t)})) })
}
