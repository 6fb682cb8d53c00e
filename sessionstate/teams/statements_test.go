package teams

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// Neither the text nor the duration of a refusal reveals its reason: the same statements run for
// every reason.
func TestRefusalsTakeTheSameStatements(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { now = now.Add(11 * time.Second); return now }
	path := filepath.Join(t.TempDir(), "teams.db")
	store, err := Open(t.Context(), Options{Path: path, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	person := func(tenant, workspace, trust string) Ref {
		s, err := store.Attach(t.Context(), Claim{Tenant: tenant, Key: rand12(), Workspace: workspace, Trust: trust}, Attachment{Instance: "one"})
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := (&Store{db: db}).Sweep(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
	}
	if plans < 10 {
		t.Errorf("%d steps in the plans of %d statements", plans, len(traced))
	}
}
