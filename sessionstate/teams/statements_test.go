package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// Neither the text nor the duration of a refusal reveals its reason: the same statements run for
// every reason.
func TestRefusalsTakeTheSameStatements(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { now = now.Add(11 * time.Second); return now }
	path := filepath.Join(t.TempDir(), "teams.db")
	store, err := Open(t.Context(), Options{Path: path, Now: clock})
	testkit.Check(t, err)
	defer store.Close()
	person := func(tenant, workspace, trust string) Ref {
		s, err := store.Attach(t.Context(), Claim{Tenant: tenant, Key: rand12(), Workspace: workspace, Trust: trust}, Attachment{Instance: "one"})
		testkit.Check(t, err)
		return s.Ref
	}
	me := person("", "w", "sandboxed")
	ended := person("", "w", "sandboxed")
	if _, err := store.EndByOperator(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{
		"unknown": "ses_000000000000", "ended": ended.ID, "itself": me.ID, "of another workspace": person("", "other", "sandboxed").ID,
		"of another tenant": person("acme", "w", "sandboxed").ID, "direct": person("", "w", "direct").ID,
		"a direct one elsewhere": person("", "other", "direct").ID,
	}

	var traced []string
	db, err := database.OpenFile(t.Context(), database.FileOptions{Path: path, Wait: lockWait, Schema: Schema(), Trace: func(statement string) { traced = append(traced, statement) }})
	testkit.Check(t, err)
	defer db.Close()
	db.Clock = clock
	s := &Store{db: db}
	for _, operation := range []struct {
		name string
		do   func(to string) error
		want error
	}{
		{"Send", func(to string) error { _, err := s.Send(t.Context(), me, Draft{To: to, Body: "hello"}); return err }, ErrTarget},
		{"Send with a key", func(to string) error {
			_, err := s.Send(t.Context(), me, Draft{To: to, Body: "hello", SendKey: "k", AnswerParent: true})
			return err
		}, ErrTarget},
		{"End", func(to string) error { _, err := s.End(t.Context(), me, to); return err }, ErrNotYours},
	} {
		var first []string
		for name, to := range targets {
			traced = nil
			if err := operation.do(to); !errors.Is(err, operation.want) {
				t.Errorf("%s: a session that is %s: %v, want %v", operation.name, name, err, operation.want)
			}
			if first == nil {
				first = traced
			}
			if len(traced) == 0 || !slices.Equal(traced, first) {
				t.Errorf("%s: a session that is %s takes the statements %q, another %q", operation.name, name, traced, first)
			}
		}
	}
}

func rand12() string { return newHandle("") }

// The sweep, and the end of a session, use indexes: with the messages of a million sessions a day, a statement that scans a
// table would exceed its timeout.
func TestStatementsReadNoTable(t *testing.T) {
	var traced []string
	db, err := database.OpenFile(t.Context(), database.FileOptions{
		Path: filepath.Join(t.TempDir(), "teams.db"), Wait: lockWait, Schema: Schema(), Trace: func(statement string) { traced = append(traced, statement) },
	})
	testkit.Check(t, err)
	defer db.Close()
	testkit.Check(t, (&Store{db: db}).Sweep(t.Context(), time.Hour))
	statements, steps := slices.Clone(traced), 0
	for _, statement := range statements {
		for _, step := range planOfFile(t, db, statement, 1, 1, 1) {
			steps++
			// There are few attachments, because only live processes have one.
			if strings.HasPrefix(step, "SCAN ") && !strings.Contains(step, "attachments") && !strings.Contains(step, " USING ") {
				t.Errorf("%s: %s", statement, step)
			}
		}
	}
	if steps < 10 {
		t.Errorf("%d steps in the plans of %d statements", steps, len(statements))
	}
	traced = nil
	if _, err := (&Store{db: db}).EndByOperator(t.Context(), Ref{}); err != nil {
		t.Fatal(err)
	}
	end := slices.Clone(traced)
	t.Run("PostgreSQL", func(t *testing.T) { testPlansOfServer(t, statements, end) })
}

// PostgreSQL decides by its statistics, so the tables have a week of rows, whose order on the disk is not that of
// their times: few rows are due, but each condition on its own holds for many.
func testPlansOfServer(t *testing.T, sweep, end []string) {
	t.Parallel()
	db := databasetest.Connect(t, databasetest.Migrate(t, pgtest.New(t, os.Getenv).Database(), Schema())).Open(Schema())
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), database.Scope{}, statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	now, apart, day := time.Now().UnixNano(), int64(20*time.Second), 4320
	exec(`INSERT INTO sessions (tenant, id, key, workspace, trust, created_by, created, seen, ended)
		SELECT '', n, n, 'w', 'direct', 'user', ?1 - n * ?2, ?1 - n * ?2, CASE WHEN n > ?3 THEN ?1 - (n - ?3) * ?2 END FROM (SELECT i * 7919 % (7 * ?3) AS n FROM generate_series(1, 7 * ?3) i) rows`, now, apart, day)
	exec(`INSERT INTO messages (tenant, to_session, seq, id, from_session, kind, body, digest, state, created, expires, carried)
		SELECT '', n, 1, n, n, 'message', CASE WHEN n < ?3 THEN repeat('text', 400) ELSE '' END, '', 'seen', ?1 - n * ?2, ?1, ?1 - n * ?2 FROM (SELECT i * 7919 % (7 * ?3) AS n FROM generate_series(1, 7 * ?3) i) rows`, now, apart, day)
	exec(`ANALYZE sessions`)
	exec(`ANALYZE messages`)
	searches := regexp.MustCompile(`(?s)SELECT .* LIMIT \?\d`) // without the look-up of what they find
	limit, placeholders := regexp.MustCompile(`LIMIT \?\d`), regexp.MustCompile(`\?\d`)
	explain := func(statement string) {
		for step := range strings.SplitSeq(databasetest.Plan(t, db, database.Scope{AllTenants: true}, statement), "\n") {
			if strings.Contains(step, "Seq Scan on ") && !strings.Contains(step, "attachments") {
				t.Errorf("%s: %s", statement, step)
			}
		}
	}
	for _, statement := range sweep {
		due := now - int64(Expiry)
		if strings.HasPrefix(statement, "DELETE") {
			due = now - int64(Retention)
		}
		search := cmp.Or(searches.FindString(statement), statement)
		explain(placeholders.ReplaceAllString(limit.ReplaceAllString(search, "LIMIT 200"), fmt.Sprint(due)))
	}
	for _, statement := range end {
		explain(strings.NewReplacer("?1", "''", "?2", "'ses_000000000000'", "?3", fmt.Sprint(now)).Replace(statement))
	}
	args := []any{now, "", "w", "direct", "", true, "", "", int64(math.MaxInt64), "", MaxListed + 1}
	if plan := databasetest.Plan(t, db, database.Scope{}, listed, args...); !strings.Contains(plan, "Index Scan Backward using sessions_ws") {
		t.Errorf("a list reads all sessions of the workspace:\n%s", plan)
	}
	if len(sweep) < 5 || len(end) == 0 {
		t.Errorf("there are %d and %d statements", len(sweep), len(end))
	}
}

// planOfFile returns the steps of a statement's plan in SQLite.
func planOfFile(t *testing.T, db *database.DB, statement string, args ...any) (steps []string) {
	t.Helper()
	err := db.View(t.Context(), database.Scope{AllTenants: true}, func(tx *database.Tx) (err error) {
		steps, err = database.Collect(tx, func(row database.Rows) (detail string, err error) {
			return detail, row.Scan(new(int), new(int), new(int), &detail)
		}, `EXPLAIN QUERY PLAN `+statement, args...)
		return err
	})
	testkit.Check(t, err)
	return steps
}

// A statement that waits for a row sees that another transaction has changed it: the sweep deletes no
// session whose user is coming back, and two callers do not get the same receipt.
func TestRowsChangeWhileStatementsWait(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	url := databasetest.Migrate(t, cluster.Database(), Schema())
	now := time.Now()
	s, err := Open(t.Context(), Options{Server: databasetest.Connect(t, url), Now: func() time.Time { return now }})
	must := func(err error) {
		t.Helper()
		testkit.Check(t, err)
	}
	must(err)
	person := func(key string) Ref {
		me, err := s.Attach(t.Context(), Claim{Key: key, Workspace: "w", Trust: "direct"}, Attachment{Instance: "one"})
		must(err)
		return me.Ref
	}
	// while runs f while another transaction changes rows.
	while := func(f func(ctx context.Context) error, change string) {
		t.Helper()
		done := make(chan error, 1)
		must(s.in(t.Context(), "", func(tx *tx) error {
			tx.exec(change)
			go func() { done <- f(context.WithoutCancel(t.Context())) }()
			time.Sleep(100 * time.Millisecond)
			return nil
		}))
		must(<-done)
	}

	from, to := person("from"), person("to")
	_, err = s.Send(t.Context(), from, Draft{To: to.ID, Body: "hello"})
	must(err)
	taking, err := s.Take(t.Context(), to, TakeOption{Limit: ReadLimit})
	must(err)
	must(s.Settle(t.Context(), taking, Arrived, "one"))
	while(func(ctx context.Context) error {
		all, err := s.Receipts(ctx, from)
		if len(all) > 0 {
			t.Errorf("two callers got the receipt %v", all[0])
		}
		return err
	}, `UPDATE messages SET reported = state`)

	back := person("back")
	_, err = s.EndByOperator(t.Context(), back)
	must(err)
	now = now.Add(Retention)
	while(func(ctx context.Context) error { return s.forget(ctx, 2*Retention) }, `UPDATE sessions SET ended = NULL WHERE id = '`+back.ID+`'`)
	if _, err := s.Session(t.Context(), back); err != nil {
		t.Errorf("the session of a user who came back: %v", err)
	}
}
