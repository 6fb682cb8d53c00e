package config

import (
	"fmt"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// StoreSettings configure where processes keep the state that they share.
type StoreSettings struct {
	// URL is the address of a PostgreSQL database. Without it the state is in files.
	URL setting.Secret
}

// Shared reports whether the state is in a database, which several machines can share.
func (s StoreSettings) Shared() bool { return s.URL != (setting.Secret{}) }

// Address returns the URL, "" if there is none. The error names store.url and does not contain the
// password.
func (s StoreSettings) Address(p cli.Process) (string, error) {
	if !s.Shared() {
		return "", nil
	}
	url, err := s.URL.Value(p)
	if err == nil {
		err = database.CheckURL(url)
	}
	if err != nil {
		return "", fmt.Errorf("store.url: %w", err)
	}
	return url, nil
}

func (s *Settings) storeOptions() []setting.Option {
	return []setting.Option{
		{Key: "store.url", Help: "the PostgreSQL database that several machines share, as postgres://USER:PASSWORD@HOST/DATABASE: a text, {env: VARIABLE} or {file: FILE}; default: files in the user's state directory",
			Value: setting.SecretOrNone(&s.Store.URL)},
	}
}
