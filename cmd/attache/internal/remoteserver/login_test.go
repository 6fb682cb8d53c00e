package remoteserver_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/login"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote"
)

// The login of the user who runs attache is used only for that user's sessions, and a header in the
// configuration takes precedence over it.
func TestOwnLogin(t *testing.T) {
	p := cli.Process{StateDir: t.TempDir()}
	g := &login.Grant{URL: "https://mcp.example.com/mcp", Obtained: time.Now(), Secrets: login.Secrets{Access: "own"}}
	testkit.Check(t, remoteserver.Logins(p).Save(g))
	header := config.DefaultSettings("")
	header.Server.Remote.Headers = map[string]setting.Secret{"Authorization": {Text: "Bearer configured"}}
	for _, test := range []struct {
		name        string
		url         string
		settings    *config.Settings
		own, shared string
	}{
		{"login", g.URL, config.DefaultSettings(""), "Bearer own", ""},
		{"login to another server", "https://other.example.com/mcp", config.DefaultSettings(""), "", ""},
		{"header", g.URL, header, "Bearer configured", "Bearer configured"},
	} {
		test.settings.Server.Remote.URL = test.url
		for i, options := range []func(cli.Process, *config.Settings, *slog.Logger) (remote.Options, error){remoteserver.Options, remoteserver.SharedOptions} {
			o, err := options(p, test.settings, slog.New(slog.DiscardHandler))
			testkit.Check(t, err)
			h := http.Header{}
			if err := o.Credentials.Set(t.Context(), h); err != nil {
				t.Error(err)
			}
			if want := []string{test.own, test.shared}[i]; h.Get("Authorization") != want {
				t.Errorf("%s: %q, want %q", test.name, h.Get("Authorization"), want)
			}
		}
	}
}
