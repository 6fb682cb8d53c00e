package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// machines returns users of two machines that share an empty database.
func machines(t *testing.T) (*pgtest.Cluster, []*team) {
	t.Helper()
	cluster := pgtest.New(t, os.Getenv)
	url := cluster.Database()
	var all []*team
	for range 2 {
		tm := writeTeam(t, t.TempDir(), "0s")
		file := filepath.Join(tm.dir, "config", "attache", "config.yaml")
		text := fmt.Sprintf(teamsConfig, "0s") + fmt.Sprintf("store: {url: %q}\n", url)
		attachetest.WriteFile(t, file, text)
		all = append(all, tm)
	}
	return cluster, all
}

// Sessions of two machines see each other through the database: one starts an agent, the other sees it and
// writes to it. While the database is down, teams report that, and they work again when it is back.
func TestTeamsOfTwoMachines(t *testing.T) {
	t.Parallel()
	cluster, users := machines(t)
	here, there := users[0], users[1]
	early := here.join("early", "proj", "direct")
	early.refused(unavailable, "list_workspace_sessions", object{})
	early.leave()
	if out := here.attache("doctor"); !strings.Contains(out, "  problem  ") || !strings.Contains(out, "attache store migrate") {
		t.Errorf("without tables attache doctor printed %q", out)
	}
	if out := here.attache("store", "migrate"); !strings.Contains(out, "teams") || !strings.Contains(out, "was 0") {
		t.Fatalf("attache store migrate printed %q", out)
	}
	if out := there.attache("store", "status"); !strings.Contains(out, "turns") {
		t.Errorf("attache store status printed %q", out)
	}
	if out := here.attache("doctor"); strings.Contains(out, "  problem  ") || !strings.Contains(out, "\nstore\n") {
		t.Errorf("attache doctor printed %q", out)
	}
	t.Cleanup(here.stopAgents)
	a := here.join("a", "proj", "direct")
	b := there.start("teams", "--session", "b", "--trust", "direct", "--workspace", filepath.Join(here.dir, "proj"))
	other := b.me()
	child := a.do("create_session", object{"title": "A child", "agent_name": "agent", "key": "one",
		"initial_message": "do touch begun\ndo await sent\ndo call read_messages {\"wait_seconds\":60}"})["session_id"].(string)
	if row := b.sessions(object{})[child]; row["is_active"] != true {
		t.Errorf("the other machine lists %v", row)
	}
	here.awaitFile("begun") // from here on, no message gets into the agent's prompt
	b.do("send_message", object{"session_id": child, "message": "from afar", "key": "one"})
	here.touch("sent")
	if result := a.messages(1)[0]; !strings.Contains(result, "from afar") || !strings.Contains(result, "finished after") {
		t.Errorf("the result is %s", result)
	}
	a.do("send_message", object{"session_id": other, "message": "hello there", "key": "one"})
	if got := b.messages(1); !slices.Equal(got, []string{"hello there"}) {
		t.Errorf("the other machine got %q", got)
	}

	cluster.Kill()
	a.refused(unavailable, "send_message", object{"session_id": other, "message": "lost"})
	cluster.Start()
	until(here, "teams are available again", func() bool {
		text, _, isError := a.callOnce("send_message", object{"session_id": other, "message": "found", "key": "once"})
		if isError && text != unavailable {
			t.Fatal(text)
		}
		return !isError
	})
	got := b.messages(1)
	if got[0] == "hello there" { // the server was killed before it was settled: it comes again
		got = b.messages(1)
	}
	if !slices.Equal(got, []string{"found"}) {
		t.Errorf("after it was away the other machine got %q", got)
	}
}

// A person waits for attache agents and attache audit verify. With a million rows they take longer than other statements
// may.
func TestCommandsOfSlowDatabase(t *testing.T) {
	t.Parallel()
	cluster, users := machines(t)
	here := users[0]
	here.attache("store", "migrate")
	const id = "ses_000000000001"
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("1", 64)
	for _, statement := range []string{
		`INSERT INTO audit_heads (tenant, file, hour, host, path, seq, digest, noted) VALUES ('', '` + digest + `', 0, '` + host + `', '/audit.jsonl', 1, '` + digest + `', 0)`,
		`CREATE POLICY slow ON audit_heads AS RESTRICTIVE USING (pg_sleep(0.6)::text IS NOT NULL)`,
		`INSERT INTO sessions (tenant, id, key, workspace, trust, created_by, run, run_state, created, seen)
			VALUES ('', '` + id + `', '', '', 'direct', 'user', 1, 'finished', 1, 1)`,
		`CREATE POLICY slow ON sessions AS RESTRICTIVE USING (pg_sleep(0.6)::text IS NOT NULL)`,
	} {
		db, err := sql.Open("pgx", cluster.URL("d1", "postgres"))
		if err == nil {
			_, err = db.ExecContext(t.Context(), statement)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
	}
	if out := here.attache("agents", "list"); !strings.Contains(out, id) {
		t.Errorf("attache agents list prints %q", out)
	}
	if out := here.attache("audit", "verify", "/audit.jsonl"); !strings.Contains(out, "the file that had record 1 ") {
		t.Errorf("attache audit verify prints %q", out)
	}
	if out := here.attache("agents", "stop", id); out != "ended "+id+"\n" {
		t.Errorf("attache agents stop prints %q", out)
	}
}
