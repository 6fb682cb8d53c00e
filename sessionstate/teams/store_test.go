package teams_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/teams/teamstest"
)

func TestStore(t *testing.T) {
	teamstest.Run(t, func(t *testing.T, now func() time.Time) *teams.Store {
		return open(t, filepath.Join(t.TempDir(), "teams.db"), now)
	})
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
