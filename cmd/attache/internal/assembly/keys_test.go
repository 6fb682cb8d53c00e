package assembly

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// unreachableKeys returns the keys of a database that cannot be reached.
func unreachableKeys(t *testing.T) *sharedKeys {
	t.Helper()
	server, err := database.Connect(database.ServerOptions{URL: "postgres://attache@127.0.0.1:1/none"})
	check(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return newSharedKeys(openKeys(server), config.DefaultSettings(""))
}

// If the database does not answer, clients need a key, and one warning is logged.
func TestUnknownKeysWarnOnce(t *testing.T) {
	keys := unreachableKeys(t)
	var log bytes.Buffer
	for range 3 {
		if needs, unsure := keys.required(slog.New(slog.NewTextHandler(&log, nil))); !needs || !unsure {
			t.Error("clients need no credential")
		}
	}
	if n := strings.Count(log.String(), "it is not known whether"); n != 1 {
		t.Errorf("the warning was logged %d times:\n%s", n, log.String())
	}
}

// A principal stays valid while the database does not answer, but not after its credential was
// refused.
func TestUnansweredFailures(t *testing.T) {
	var o capture.Options
	(&Authenticator{}).configure(&o, config.DefaultSettings(""), slog.New(slog.DiscardHandler))
	_, unreachable := unreachableKeys(t).Resolve(t.Context(), "atk_abcdefgh_12345678901234567890123456789012")
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, timedOut := unreachableKeys(t).Resolve(expired, "atk_abcdefgh_12345678901234567890123456789012")
	for err, want := range map[error]bool{
		unreachable: true, timedOut: true,
		identity.ErrTokenExpired: false, identity.ErrTokenKey: false, identity.ErrKeySet: false, identity.ErrTokenFile: false,
		identity.ErrSessionFile: false, identity.ErrUnknownKey: false,
	} {
		if o.Unanswered(err) != want || want && !o.Passing(err) {
			t.Errorf("%v: Unanswered %t, Passing %t; want %t", err, o.Unanswered(err), o.Passing(err), want)
		}
	}
}
