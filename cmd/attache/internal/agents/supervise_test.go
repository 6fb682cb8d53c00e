//go:build unix

package agents

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// A run whose parent is over continues or is stopped, depending on its template, and has one result.
func TestOnParentEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ onParentEnd, want string }{
		{"stop", "stopped, as the session that created it is over, after "},
		{"finish", "finished after "},
		{"keep", "finished after "},
	} {
		t.Run(test.onParentEnd, func(t *testing.T) {
			dir := t.TempDir()
			path, end := filepath.Join(dir, "teams.db"), filepath.Join(dir, "end")
			open := func(ago time.Duration) *teams.Store {
				db, err := teams.Open(t.Context(), teams.Options{Path: path, Now: func() time.Time { return time.Now().Add(-ago) }})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				return db
			}
			past, now := open(teams.ParentGone+time.Minute), open(0)
			parent, child := createAgent(t, past, now) // the parent has been silent for too long
			order, err := json.Marshal(Order{
				Store: path, Outputs: dir, Run: teams.RunRef{Ref: child.Ref, Run: 1}, Env: os.Environ(), Dir: dir,
				Argv:      []string{"sh", "-c", "until test -e end; do sleep 0.01; done"},
				TimeLimit: time.Hour, OnParentEnd: test.onParentEnd,
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.onParentEnd != "stop" {
				go func() { // end the agent when the supervisor has seen that the parent is over
					for seen := child.LastActive; ; time.Sleep(time.Millisecond) {
						if s, err := now.Session(t.Context(), child.Ref); err != nil || s.LastActive.After(seen) {
							break
						}
					}
					_ = os.WriteFile(end, nil, 0o600)
				}()
			}
			if err := Supervise(t.Context(), strings.NewReader(string(order)), nopCloser{io.Discard}); err != nil {
				t.Fatal(err)
			}
			taking, err := now.Take(t.Context(), parent.Ref, teams.TakeOption{Limit: teams.ReadLimit})
			if err != nil {
				t.Fatal(err)
			}
			if len(taking.Messages) != 1 || !strings.HasPrefix(taking.Messages[0].Body, test.want) {
				t.Errorf("the parent was told %+v, want one result %q…", taking.Messages, test.want)
			}
		})
	}
}

// An agent does not start if its session was ended meanwhile.
func TestEndedBeforeStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "teams.db")
	db, err := teams.Open(t.Context(), teams.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	parent, child := createAgent(t, db, db)
	if _, err := db.EndByOperator(t.Context(), child.Ref); err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(Order{
		Store: path, Outputs: dir, Run: teams.RunRef{Ref: child.Ref, Run: 1}, Env: os.Environ(), Dir: dir,
		Argv: []string{"touch", "started"}, TimeLimit: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Supervise(t.Context(), strings.NewReader(string(order)), nopCloser{io.Discard}); err == nil {
		t.Error("the supervisor returned no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the agent has started")
	}
	if s, err := db.Session(t.Context(), parent.Ref); err != nil || s.Children != 0 || s.Queued != 1 {
		t.Errorf("the parent has the slots and results %+v, %v", s, err)
	}
}

// If records are required, an agent does not start unless its start was recorded.
func TestStartIsRecorded(t *testing.T) {
	for _, test := range []struct {
		name, file string
		required   bool
		started    bool
	}{
		{"required", "audit.jsonl", true, true},
		{"required, cannot be written", "no/such/directory/audit.jsonl", true, false},
		{"cannot be written", "no/such/directory/audit.jsonl", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "teams.db")
			db, err := teams.Open(t.Context(), teams.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			parent, child := createAgent(t, db, db)
			order, err := json.Marshal(Order{
				Store: path, Outputs: dir, Run: teams.RunRef{Ref: child.Ref, Run: 1}, Env: os.Environ(), Dir: dir,
				Argv: []string{"touch", "started"}, TimeLimit: time.Hour,
				Server: "attache-teams", Audit: config.AuditSettings{File: filepath.Join(dir, test.file), Required: test.required},
			})
			if err != nil {
				t.Fatal(err)
			}
			err = Supervise(t.Context(), strings.NewReader(string(order)), nopCloser{io.Discard})
			if (err == nil) != test.started {
				t.Errorf("the supervisor returned %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "started")); (err == nil) != test.started {
				t.Errorf("the agent: %v, want started %v", err, test.started)
			}
			taking, err := db.Take(t.Context(), parent.Ref, teams.TakeOption{Limit: teams.ReadLimit})
			if err != nil || len(taking.Messages) != 1 {
				t.Fatalf("the parent was told %+v, %v", taking, err)
			}
			want := "finished after "
			if !test.started {
				want = "could not start: its start could not be recorded"
			}
			if body := taking.Messages[0].Body; !strings.HasPrefix(body, want) {
				t.Errorf("the parent was told %q, want %q…", body, want)
			}
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
