package teams_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/teams/teamstest"
)

func TestStore(t *testing.T) {
	teamstest.Run(t, func(t *testing.T, now func() time.Time) *teams.Store {
		return open(t, filepath.Join(t.TempDir(), "teams.db"), now)
	})
}

// The same on PostgreSQL.
func TestStoreOnPostgreSQL(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	made := migrated(t, cluster.Database())
	teamstest.Run(t, func(t *testing.T, now func() time.Time) *teams.Store {
		return openURL(t, cluster.Copy(made), now)
	})
}

// The same through pgbouncer in transaction mode, which gives a connection to another client after
// each transaction.
func TestStoreBehindPgbouncer(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	made, over := migrated(t, cluster.Database()), cluster.Bouncer(os.Getenv)
	teamstest.Run(t, func(t *testing.T, now func() time.Time) *teams.Store {
		return openURL(t, over(cluster.Copy(made)), now)
	})
}

// longTimeouts are not reached by a machine that is slow.
var longTimeouts = database.Timeouts{Connect: time.Minute, Statement: time.Minute, Lock: time.Minute, All: 2 * time.Minute, Again: 2 * time.Minute}

// migrated makes the tables in a database.
func migrated(t *testing.T, url string) string {
	t.Helper()
	server, err := database.Connect(database.ServerOptions{URL: url, Timeouts: longTimeouts})
	if err == nil {
		_, err = server.Migrate(context.Background(), []database.Schema{teams.Schema()})
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	return url
}

// openURL opens the tables of a server to the end of the test.
func openURL(t *testing.T, url string, now func() time.Time) *teams.Store {
	t.Helper()
	server, err := database.Connect(database.ServerOptions{URL: url, Connections: 10, Timeouts: longTimeouts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s, err := teams.Open(t.Context(), teams.Options{Server: server, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openAt opens the store at a path or a URL to the end of the test.
func openAt(t *testing.T, at string, now func() time.Time) *teams.Store {
	t.Helper()
	if strings.Contains(at, "://") {
		return openURL(t, at, now)
	}
	return open(t, at, now)
}

// open opens a store to the end of the test.
func open(t *testing.T, path string, now func() time.Time) *teams.Store {
	t.Helper()
	s, err := teams.Open(t.Context(), teams.Options{Path: path, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
