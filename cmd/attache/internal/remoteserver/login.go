package remoteserver

import (
	"net/http"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/login"
)

// Logins returns the store of the user's logins. Its Dir is empty if there is no state directory.
func Logins(p cli.Process) login.Store {
	return login.Store{Dir: p.StatePath("logins")}
}

// Login returns the options for a login to the remote server of the settings.
func Login(p cli.Process, s *config.Settings) (login.Options, error) {
	r := &s.Server.Remote
	t, err := transport(p, r)
	if err != nil {
		return login.Options{}, err
	}
	h, err := r.Header(p)
	if err != nil {
		return login.Options{}, err
	}
	return loginOptions(p, r, t.Transport, h), nil
}

func loginOptions(p cli.Process, r *config.RemoteSettings, t *http.Transport, h http.Header) login.Options {
	store := Logins(p)
	if r.OAuth.Store != config.StoreFile {
		store.Ring = login.SystemRing(p)
	}
	return login.Options{
		URL:            r.URL,
		Name:           config.ShownAddress(r.URL),
		Transport:      t,
		Header:         h,
		ClientID:       r.OAuth.ClientID,
		ClientSecret:   r.OAuth.Secret(p),
		ClientMetadata: r.OAuth.ClientMetadata,
		Machine:        r.OAuth.Grant == config.GrantMachine,
		Issuer:         r.OAuth.Issuer,
		Resource:       r.OAuth.Resource,
		Params:         r.OAuth.Params,
		Scopes:         r.OAuth.Scopes,
		Redirect:       r.OAuth.Redirect,
		Store:          store,
		Secret:         p.Tokens.Add,
	}
}
