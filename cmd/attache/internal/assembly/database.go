package assembly

import (
	"context"
	"errors"
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/internal/fronts"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/keystore"
	"github.com/attache-mcp/attache/sessionstate/ratestore"
	store "github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/turnstore"
)

// Schemas returns the schemas of all state that can be in a database, for attache store, which makes and checks their
// tables. A new kind of state belongs here too.
func Schemas() []database.Schema {
	return []database.Schema{store.Schema(), turnstore.Schema(), fronts.Schema(), auditheads.Schema(), keystore.Schema(), ratestore.Schema()}
}

// OpenDatabase returns the database of store.url, nil if the state is in files. connections is the
// maximum number of connections. It does not connect yet; an error is a mistake in the settings. Tell logs once
// that the database is down, for all users of the database: see rateDatabase.Lend.
func OpenDatabase(p cli.Process, s *config.Settings, connections int, log *slog.Logger) (*database.Server, error) {
	url, err := s.Store.Address(p)
	if url == "" || err != nil {
		return nil, err
	}
	return database.Connect(database.ServerOptions{URL: url, Connections: connections, Tell: func(err error) {
		if err != nil {
			log.Warn("the shared database does not answer; attache goes on without it until it does: see docs/scale.md", "err", err)
			return
		}
		log.Info("the shared database answers again")
	}})
}

// OpenForPerson is OpenDatabase for a command that a person waits for: the database gets more time, and the
// command prints its error, so nothing is logged.
func OpenForPerson(p cli.Process, s *config.Settings) (*database.Server, error) {
	url, err := s.Store.Address(p)
	if url == "" || err != nil {
		return nil, err
	}
	return database.Connect(database.ServerOptions{URL: url, Timeouts: database.PersonTimeouts()})
}

// TeamsFile returns the file of the registry of sessions, "" if the user has no state
// directory.
func TeamsFile(p cli.Process) string {
	return p.StatePath("teams.db")
}

// OpenTeams opens the registry of sessions in db, or in the file if db is nil. It stays open until
// the process ends.
func OpenTeams(p cli.Process, db *database.Server) (*store.Store, error) {
	path := TeamsFile(p)
	if db == nil && path == "" {
		return nil, errNoState
	}
	return store.Open(context.Background(), store.Options{Server: db, Path: path})
}

// openTurns opens the turns of briefings that processes share, in db, or in the user's file if db is
// nil. They stay open until the process ends: closing the file would write the log of SQLite into
// it, which other processes can do, and a client that ends its servers does not wait long.
func openTurns(p cli.Process, db *database.Server) (*turnstore.DB, error) {
	path := p.StatePath("briefings.db")
	if db == nil && path == "" {
		return nil, errNoState
	}
	return turnstore.Open(context.Background(), turnstore.Options{Server: db, Path: path})
}

var errNoState = errors.New("the user's state directory is not known: set HOME")
