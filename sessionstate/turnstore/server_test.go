package turnstore

import (
	"os"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/statetest"
)

func TestTurnsOnPostgreSQL(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	url := cluster.Database()
	connect := func(t *testing.T) *database.Server {
		t.Helper()
		cluster.Empty(url)
		server, err := database.Connect(database.ServerOptions{URL: url, Connections: 10, Timeouts: database.Timeouts{
			Connect: time.Minute, Statement: time.Minute, Lock: time.Minute, All: 2 * time.Minute, Again: 2 * time.Minute,
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		return server
	}
	if _, err := connect(t).Migrate(t.Context(), []database.Schema{Schema()}); err != nil {
		t.Fatal(err)
	}
	statetest.Run(t, func(t *testing.T, now func() time.Time) sessionstate.Turns {
		return opened(t, Options{Server: connect(t), Now: now})
	})
	t.Run("tenants are apart", func(t *testing.T) {
		s := openedStore(t, Options{Server: connect(t)})
		take(t, s.Of("one"), "a", true)
		take(t, s.Of("two"), "a", true)
		take(t, s.Of("one"), "a", false)
	})
}
