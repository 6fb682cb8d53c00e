package filecheck

import (
	"maps"
	"os"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// remote returns the mistakes in the files for a remote server. It does not check variables, because
// the client sets them.
func remote(p cli.Process, s *config.Settings) (all setting.Problems) {
	r := &s.Server.Remote
	secret := func(origin, key string, v setting.Secret) {
		if v.File != "" {
			_, err := v.Value(p)
			all.AddError(s.Origin(origin), key, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		secret("server.headers", "server.headers."+name, r.Headers[name])
	}
	secret("server.oauth.client_secret", "server.oauth.client_secret", r.OAuth.ClientSecret)
	return slices.Concat(all, readable(s, "server.tls.ca", r.CA), readable(s, "server.tls.cert", r.Cert), readable(s, "server.tls.key", r.Key))
}

// serve returns the mistakes with which attache serve would not start. It does not ask a database
// whether it has keys.
func serve(p cli.Process, s *config.Settings) setting.Problems {
	all := slices.Concat(config.CheckServe(s), readable(s, "serve.tls.cert", s.Serve.Cert), readable(s, "serve.tls.key", s.Serve.Key))
	if s.Store.URL.File != "" {
		if _, err := s.Store.Address(p); err != nil {
			all.Add(s.Origin("store.url"), "%v", err)
		}
	}
	if !config.IsLoopback(s.Serve.Listen) && !authenticates(s) {
		all.Add(s.Origin("serve.listen"), "serve.listen: other machines reach %s, and nothing says who may use it: make keys with attache key create, or set identity.jwt, or listen on 127.0.0.1", s.Serve.Listen)
	}
	return all
}

// authenticates reports whether attache serve may require credentials.
func authenticates(s *config.Settings) bool {
	if s.Identity.AcceptsTokens() || s.Store.Shared() || !s.Origin("identity.keys_file").Default() {
		return true
	}
	_, err := os.Stat(s.Identity.KeysFile)
	return err == nil
}

// readable returns a problem if the file of key cannot be read; path is empty for none.
func readable(s *config.Settings, key, path string) (all setting.Problems) {
	if path == "" {
		return nil
	}
	if _, _, err := textfile.Read(path, textfile.Rules{Max: 1 << 20}); err != nil {
		all.Add(s.Origin(key), "%s: %s: %v", key, path, cli.Unreadable(err))
	}
	return all
}
