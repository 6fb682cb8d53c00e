package teams

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// The sweep uses indexes: with the messages of a million sessions a day, a statement that scans a
// table would exceed its timeout.
func TestSweepReadsNoTable(t *testing.T) {
	var traced []string
	db, err := database.OpenFile(t.Context(), database.FileOptions{
		Path: filepath.Join(t.TempDir(), "teams.db"), Wait: lockWait, Schema: Schema(), Trace: func(statement string) { traced = append(traced, statement) },
	})
	testkit.Check(t, err)
	defer db.Close()
	testkit.Check(t, (&Store{db: db}).Sweep(t.Context(), time.Hour))
	plans := 0
	for _, statement := range slices.Clone(traced) {
		err := db.View(t.Context(), database.Scope{AllTenants: true}, func(tx *database.Tx) error {
			rows, err := tx.Rows(`EXPLAIN QUERY PLAN `+statement, 1, 1, 1)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				plans++
				// There are few attachments, because only live processes have one.
				if strings.HasPrefix(detail, "SCAN ") && !strings.Contains(detail, "attachments") && !strings.Contains(detail, " USING ") {
					t.Errorf("%s: %s", statement, detail)
				}
			}
			return rows.Err()
		})
		testkit.Check(t, err)
	}
	if plans < 10 {
		t.Errorf("%d steps in the plans of %d statements", plans, len(traced))
	}
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
