package assembly

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/sqlitestore"
)

// turns say whose turn the briefing is: in this process, and among all that the user
// runs; the second is nil where each process gives it.
type turns struct {
	own    sessionstate.Turns
	shared func() (sessionstate.Turns, error)
}

// turns returns where it is kept which session has had its briefing. A dry run, and
// what only plays a session, neither spends the turn of a real one nor goes by it.
func (k *State) turns(p cli.Process, s *config.Settings) turns {
	if k.briefings == nil {
		k.briefings = sessionstate.NewMemoryTurns(nil)
	}
	t := turns{own: k.briefings}
	if !k.Shares || s.DryRun || s.Briefing.OncePer == "server" {
		return t
	}
	if k.opened == nil {
		k.opened = sync.OnceValues(func() (sessionstate.Turns, error) { return openTurns(p) })
	}
	t.shared = k.opened
	return t
}

// openTurns opens the file that the user's attaches share. It stays open to the end of
// the process: closing it would write out the log of SQLite, which others may do, and
// a client that ends its servers does not wait long.
func openTurns(p cli.Process) (sessionstate.Turns, error) {
	if p.StateDir == "" {
		return nil, errors.New("it is not known where the user's state belongs: set HOME")
	}
	return sqlitestore.Open(context.Background(), sqlitestore.Options{
		Path: filepath.Join(p.StateDir, "attache", "briefings.db"),
	})
}
