//go:build unix

package agents

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// The end of a run is saved in a file while the database is not available. When it is available again,
// the end is reported once, by any process.
func TestSpool(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	url := cluster.Database()
	connect := func() *teams.Store { return openShared(t, url) }
	db := connect()
	parent, agent := createAgent(t, db, db)
	cluster.Kill()
	s := &supervisor{o: order{Outputs: t.TempDir(), Run: teams.RunRef{Ref: agent.Ref, Run: 1}}, db: db, reportEvery: 10 * time.Millisecond}
	end := teams.Ending{CostUSD: "0.5", Report: "finished after 1s"}
	reported := make(chan struct{})
	go func() { defer close(reported); s.report(end) }()
	file := (&spooledEnd{Run: s.o.Run}).path(s.o.Outputs)
	awaitFile(t, file)
	sendSpooled(t.Context(), db, s.o.Outputs, slog.New(slog.DiscardHandler)) // keeps it
	if _, err := os.Stat(file); err != nil {
		t.Errorf("while the database is away: %v", err)
	}
	cluster.Start()
	db = connect()
	for range 2 {
		sendSpooled(t.Context(), db, s.o.Outputs, slog.New(slog.DiscardHandler))
	}
	<-reported
	if _, err := os.Stat(file); err == nil {
		t.Error("the end was reported, but its file still exists")
	}
	if got := onlyMessage(t, db, parent); got != end.Report {
		t.Errorf("the parent was told %q", got)
	}
	check(t, os.WriteFile(file, []byte("{"), 0o600))
	sendSpooled(t.Context(), db, s.o.Outputs, slog.New(slog.DiscardHandler)) // ignores an invalid file

	refused, err := json.Marshal(spooledEnd{db.Address(), teams.RunRef{Ref: teams.Ref{ID: "a\x00"}, Run: 1}, end})
	if err == nil {
		err = os.WriteFile(filepath.Join(spoolDirectory(s.o.Outputs), "0.json"), refused, 0o600)
	}
	forgotten := &spooledEnd{db.Address(), teams.RunRef{Ref: teams.Ref{ID: "z"}, Run: 1}, end}
	if err == nil {
		err = forgotten.write(s.o.Outputs)
	}
	check(t, err)
	sendSpooled(t.Context(), db, s.o.Outputs, slog.New(slog.DiscardHandler))
	if _, err := os.Stat(forgotten.path(s.o.Outputs)); err == nil {
		t.Error("an end that the registry refused has held up the next one")
	}
	name := filepath.Join(spoolDirectory(s.o.Outputs), "0.json")
	if _, err := os.Stat(name); err != nil {
		t.Errorf("an end that was refused once: %v", err)
	}
	old := time.Now().Add(-teams.Retention - time.Minute)
	check(t, os.Chtimes(name, old, old))
	var log strings.Builder
	sendSpooled(t.Context(), db, s.o.Outputs, slog.New(slog.NewTextHandler(&log, nil)))
	if _, err := os.Stat(name); err == nil || !strings.Contains(log.String(), "refused it for seven days") {
		t.Errorf("an end that was refused for seven days: %v, log %q", err, log.String())
	}
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, name string) {
	for {
		if _, err := os.Stat(name); err == nil || t.Context().Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// openShared opens the registry in a database, with its tables.
func openShared(t *testing.T, url string) *teams.Store {
	t.Helper()
	server := databasetest.Connect(t, url)
	if _, err := server.Migrate(t.Context(), []database.Schema{teams.Schema()}); err != nil {
		t.Fatal(err)
	}
	db, err := teams.Open(t.Context(), teams.Options{Server: server})
	check(t, err)
	return db
}

// If the database is not available when an agent has read its messages, they are settled later, before the end of the
// run is reported. Otherwise the agent would be started again with the same messages.
func TestSettledLater(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	db := openShared(t, cluster.Database())
	parent, me := createAgent(t, db, db)
	taking, err := db.Take(t.Context(), me.Ref, teams.TakeOption{Limit: teams.ReadLimit})
	check(t, err)
	agent, err := child.Start(t.Context(), child.Options{Argv: []string{"cat"}, Env: os.Environ()})
	check(t, err)
	s := &supervisor{o: order{Outputs: t.TempDir(), Run: teams.RunRef{Ref: me.Ref, Run: 1}}, db: db, me: me, agent: agent, settled: make(chan struct{}), reportEvery: 10 * time.Millisecond}
	cluster.Kill()
	go s.prompt(taking)
	_, _ = io.Copy(io.Discard, agent.Stdout()) // it has read the messages
	agent.Wait()
	reported := make(chan struct{})
	go func() { defer close(reported); s.report(teams.Ending{Report: "done"}) }()
	awaitFile(t, (&spooledEnd{Run: s.o.Run}).path(s.o.Outputs))
	cluster.Start()
	<-reported
	if got := onlyMessage(t, db, parent); got != "done" {
		t.Errorf("the parent was told %q", got)
	}
	if again, err := db.Resumable(t.Context(), "", "w"); err != nil || len(again) > 0 {
		t.Errorf("to be started again: %+v, %v", again, err)
	}
}

// An end is reported to the registry that has its run.
func TestSpoolOfRegistries(t *testing.T) {
	mine, other := openRegistry(t, t.TempDir(), 0), openRegistry(t, t.TempDir(), 0)
	outputs := t.TempDir()
	end := &spooledEnd{mine.Address(), teams.RunRef{Ref: teams.Ref{ID: "s_1"}, Run: 1}, teams.Ending{Report: "done"}}
	check(t, end.write(outputs))
	for _, test := range []struct {
		db   *teams.Store
		kept bool
	}{{other, true}, {mine, false}} {
		sendSpooled(t.Context(), test.db, outputs, slog.New(slog.DiscardHandler))
		if _, err := os.Stat(end.path(outputs)); (err == nil) != test.kept {
			t.Errorf("after sending to %s: %v; want the file kept: %t", test.db.Address(), err, test.kept)
		}
	}
}
