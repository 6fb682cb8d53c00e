package assembly

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// The address of the database, which contains a password, is hidden from servers, errors and recordings.
func TestDatabaseAddressIsSecret(t *testing.T) {
	s := config.DefaultSettings("")
	s.Store.URL = setting.Secret{Env: "STORE"}
	if !slices.Contains(OwnVariables(s), "STORE") {
		t.Error("the variable is passed to the server")
	}
	for value, ok := range map[string]bool{"postgres://attache:hunter2@h/d": true, "mysql://attache:hunter2@h/d": false, "": false} {
		p := cli.Process{Env: []string{"STORE=" + value}}
		db, err := OpenDatabase(p, s, 1, slog.New(slog.DiscardHandler))
		if (err == nil) != ok || (db != nil) != ok || err != nil && (strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "store.url")) {
			t.Errorf("%q: %v, %v", value, db, err)
		}
		if ok && !slices.Contains(config.Secrets(p, s, nil).Values, value) {
			t.Errorf("%q is not removed from recordings", value)
		}
	}
}
