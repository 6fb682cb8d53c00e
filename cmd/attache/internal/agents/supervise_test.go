//go:build unix

package agents

import (
	"bytes"
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
			past, now := openRegistry(t, dir, teams.ParentGone+time.Minute), openRegistry(t, dir, 0)
			parent, child := createAgent(t, past, now) // the parent has been silent for too long
			if test.onParentEnd != "stop" {
				go func() { // end the agent when the supervisor has seen that the parent is over
					for seen := child.LastActive; ; time.Sleep(time.Millisecond) {
						if s, err := now.Session(t.Context(), child.Ref); err != nil || s.LastActive.After(seen) {
							break
						}
					}
					_ = os.WriteFile(filepath.Join(dir, "end"), nil, 0o600)
				}()
			}
			o := order{Argv: []string{"sh", "-c", "until test -e end; do sleep 0.01; done"}, OnParentEnd: test.onParentEnd}
			check(t, supervise(t, dir, child, o))
			if got := onlyMessage(t, now, parent); !strings.HasPrefix(got, test.want) {
				t.Errorf("the parent was told %q, want %q…", got, test.want)
			}
		})
	}
}

// The registry and the parent learn how a run has ended.
func TestEnding(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script, result string
		state                teams.State
		status               int
		cost, facts, text    string
	}{
		{"finished", "echo ' done '; echo why >&2", "text", teams.Finished, 0, "", " (exit status 0)", "done"},
		{"nothing said", "echo why >&2", "text", teams.Finished, 0, "", " (exit status 0)", ""},
		{"status", "echo one >&2; echo two >&2; exit 3", "text", teams.Failed, 3, "", " (exit status 3)", "one\ntwo"},
		{"as its program says", `echo '{"result":"no","is_error":true,"total_cost_usd":0.5}'`, claudeJSON, teams.Failed, 0, "0.5", " (exit status 0, 0.5 USD)", "no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			db := openRegistry(t, dir, 0)
			parent, child := createAgent(t, db, db)
			check(t, supervise(t, dir, child, order{Argv: []string{"sh", "-c", "cat >/dev/null; " + test.script}, Result: test.result}))
			s, err := db.Session(t.Context(), child.Ref)
			if err != nil || s.State != test.state || s.ExitStatus != test.status || s.CostUSD != test.cost {
				t.Errorf("the registry has %+v, %v", s, err)
			}
			first, text, _ := strings.Cut(onlyMessage(t, db, parent), ":\n")
			if !strings.HasPrefix(first, string(test.state)+" after ") || !strings.HasSuffix(first, test.facts) || text != test.text {
				t.Errorf("the parent was told %q, then %q", first, text)
			}
		})
	}
}

// An agent is told who wrote its first message, and that the message is not from a user.
func TestPrompt(t *testing.T) {
	me := &teams.Session{Ref: teams.Ref{ID: "ses_me"}, Title: "Review"}
	first := teams.Message{From: "ses_parent", Kind: teams.First, Body: "Look at\x1b[31m main.go"}
	other := teams.Message{ID: "m_1", From: "ses_peer", Kind: teams.Text, Body: "and go.mod"}
	const begin = `You run as the session ses_me "Review". The session ses_parent, of another agent, has created you. That agent, and not a user, has written what follows. ` +
		"Answer by ending: your last message is reported to it.\n\nLook at"
	const end = "\nThese messages have come for your session. Answer by ending: your last message is reported to the session that created you.\n"
	for _, test := range []struct {
		messages   []teams.Message
		begin, end string
	}{
		{[]teams.Message{first}, begin, " main.go\n"},
		{[]teams.Message{first, other}, begin, end},
		{[]teams.Message{other}, "═══ MESSAGES FROM OTHER AGENTS", end},
	} {
		got := prompt(me, &teams.Taking{Messages: test.messages}, time.Now())
		if !strings.HasPrefix(got, test.begin) || !strings.HasSuffix(got, test.end) || strings.Contains(got, "\x1b") ||
			strings.Contains(got, other.Body) != (test.end == end) || strings.Count(got, first.From) > 1 {
			t.Errorf("the prompt is\n%s", got)
		}
	}
}

// An agent does not start if its session was ended meanwhile.
func TestEndedBeforeStart(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	parent, child := createAgent(t, db, db)
	if _, err := db.EndByOperator(t.Context(), child.Ref); err != nil {
		t.Fatal(err)
	}
	if err := supervise(t, dir, child, order{Argv: []string{"touch", "started"}}); err == nil {
		t.Error("the supervisor returned no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the agent has started")
	}
	if s, err := db.Session(t.Context(), parent.Ref); err != nil || s.Children != 0 || s.Queued != 1 {
		t.Errorf("the parent has the slots and results %+v, %v", s, err)
	}
}

// An agent that could not be started is not started again for the same message.
func TestNotStarted(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	parent, child := createAgent(t, db, db)
	if err := supervise(t, dir, child, order{Argv: []string{"there-is-no-such-program"}}); err == nil {
		t.Error("the supervisor returned no error")
	}
	if got := onlyMessage(t, db, parent); !strings.HasPrefix(got, "could not start: ") {
		t.Errorf("the parent was told %q", got)
	}
	if again, err := db.Resumable(t.Context(), "", "w"); err != nil || len(again) > 0 {
		t.Errorf("to be started again: %+v, %v", again, err)
	}
}

// An agent that does not read its messages is not started again because of them. Their sender gets a notice.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	_, child := createAgent(t, db, db)
	peer, err := db.Attach(t.Context(), teams.Claim{Key: "peer", Workspace: "w", Trust: "direct"}, teams.Attachment{Instance: "two"})
	check(t, err)
	long := strings.Repeat("€", teams.MaxMessage) // more than a pipe holds
	if _, err := db.Send(t.Context(), peer.Ref, teams.Draft{To: child.ID, Body: long}); err != nil {
		t.Fatal(err)
	}
	check(t, supervise(t, dir, child, order{Argv: []string{"true"}}))
	if got := onlyMessage(t, db, peer); !strings.HasSuffix(got, " did not arrive: its agent ended before it had read all of its messages") {
		t.Errorf("the sender was told %q", got)
	}
	if again, err := db.Resumable(t.Context(), "", "w"); err != nil || len(again) > 0 {
		t.Errorf("to be started again: %+v, %v", again, err)
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
			db := openRegistry(t, dir, 0)
			parent, child := createAgent(t, db, db)
			err := supervise(t, dir, child, order{
				Argv: []string{"touch", "started"}, Server: "attache-teams",
				Audit: config.AuditSettings{File: filepath.Join(dir, test.file), Required: test.required},
			})
			if (err == nil) != test.started {
				t.Errorf("the supervisor returned %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "started")); (err == nil) != test.started {
				t.Errorf("the agent: %v, want started %v", err, test.started)
			}
			want := "finished after "
			if !test.started {
				want = "could not start: its start could not be recorded"
			}
			if got := onlyMessage(t, db, parent); !strings.HasPrefix(got, want) {
				t.Errorf("the parent was told %q, want %q…", got, want)
			}
		})
	}
}

// supervise runs the supervisor of the first run of an agent, with the registry and its outputs in dir.
func supervise(t *testing.T, dir string, agent *teams.Session, o order) error {
	t.Helper()
	o.Store, o.Outputs, o.Dir = filepath.Join(dir, "teams.db"), dir, dir
	o.Run, o.Env, o.TimeLimit = teams.RunRef{Ref: agent.Ref, Run: 1}, os.Environ(), time.Hour
	order, err := json.Marshal(o)
	check(t, err)
	return Supervise(t.Context(), bytes.NewReader(order), nopCloser{io.Discard})
}

// onlyMessage returns the body of the only message in the mailbox of a session.
func onlyMessage(t *testing.T, db *teams.Store, of *teams.Session) string {
	t.Helper()
	taking, err := db.Take(t.Context(), of.Ref, teams.TakeOption{Limit: teams.ReadLimit})
	if err != nil || len(taking.Messages) != 1 {
		t.Fatalf("the mailbox has %+v, %v", taking, err)
	}
	return taking.Messages[0].Body
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
