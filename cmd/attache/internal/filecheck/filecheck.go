// Package filecheck checks the files that settings name.
package filecheck

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/sessionstate/identity"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// All returns the mistakes in the files that the settings name. A session can start without most of
// these files and only warns; here each is a mistake.
func All(p cli.Process, s *config.Settings) error {
	var all setting.Problems
	_, _, err := config.APIKey(p, s)
	for _, err := range []error{err, PolicyToken(p, s)} {
		problems, _ := errors.AsType[setting.Problems](err)
		all = append(all, problems...)
	}
	if s.Policy.Dir != "" {
		for _, found := range filesource.Check(s.Policy.Dir) {
			if !found.Warning {
				all.Add(s.Origin("policy.dir"), "policy.dir: %v", found)
			}
		}
	}
	if namesKeys(s) {
		_, err := identity.List(s.Identity.KeysFile)
		all.AddError(s.Origin("identity.keys_file"), "identity.keys_file", err)
	}
	all = slices.Concat(all, Identity(s), Audit(s), remote(p, s), serve(p, s))
	if s.Record != "" {
		dir := filepath.Dir(s.Record)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			all.Add(s.Origin("record"), "record: there is no directory %s: make it, or name another file", dir)
		} else if info, err := os.Stat(s.Record); err == nil && info.IsDir() {
			all.Add(s.Origin("record"), "record: %s is a directory: name a file in it", s.Record)
		}
	}
	return all.Err()
}

// Config is like [All]. Without a command no entry of servers applies to s, so it also checks the
// files that each entry names, and adds the warnings about its rules to s.
func Config(p cli.Process, flags setting.Flags, command []string, s *config.Settings) error {
	all, _ := errors.AsType[setting.Problems](All(p, s))
	if len(command) > 0 {
		return all.Err()
	}
	add := func(problems setting.Problems) { // several entries may have the same problem, which is added once
		for _, problem := range problems {
			if !slices.Contains(all, problem) {
				all = append(all, problem)
			}
		}
	}
	for _, e := range s.Servers {
		own, err := config.LoadServed(p, flags, e.Name)
		if err != nil {
			problems, ok := errors.AsType[setting.Problems](err)
			if !ok {
				return err
			}
			add(problems)
			continue
		}
		for _, w := range own.Warnings {
			if strings.HasPrefix(w.Text, "servers."+e.Name+".") && !slices.Contains(s.Warnings, w) {
				s.Warnings = append(s.Warnings, w)
			}
		}
		add(remote(p, own))
	}
	return all.Err()
}

// PolicyToken returns an error if the variable for the endpoint's token is configured but not set.
func PolicyToken(p cli.Process, s *config.Settings) error {
	name := s.Policy.TokenEnv
	if s.Policy.URL == "" || name == "" || p.Getenv(name) != "" {
		return nil
	}
	var all setting.Problems
	all.Add(s.Origin("policy.token_env"), "policy.token_env: the variable %s is not set: set it to the token, or leave policy.token_env out", name)
	return all
}

// Audit returns the mistakes in the settings and the file of the audit.
func Audit(s *config.Settings) (all setting.Problems) {
	if s.Audit.File == "" {
		if s.Audit.Required {
			all.Add(s.Origin("audit.required"), "audit.required: there is no audit.file: name one, or leave this out")
		}
		return all
	}
	all.AddError(s.Origin("audit.file"), "audit.file", chain.Check(s.Audit.File))
	return all
}

// Identity returns the mistakes in the files that identify the principal of a session. A session
// would start without them.
func Identity(s *config.Settings) (all setting.Problems) {
	all.AddError(s.Origin("session.file"), "session.file", s.Operator.FileErr)
	if s.Identity.TokenFile != "" {
		_, err := identity.TokenFile(s.Identity.TokenFile)()
		all.AddError(s.Origin("identity.token_file"), "identity.token_file", err)
	}
	if jwks := s.Identity.JWT.JWKS; jwks != "" && !strings.Contains(jwks, "://") {
		if tokens, err := identity.NewTokens(s.Identity.Tokens()); err == nil {
			all.AddError(s.Origin("identity.jwt.jwks"), "identity.jwt.jwks", tokens.CheckKeys(context.Background()))
		}
	}
	return all
}

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

// serve returns the mistakes with which attache serve would not start, or would start with a certificate
// that it cannot use. It does not ask a database whether it has keys.
func serve(p cli.Process, s *config.Settings) setting.Problems {
	all := slices.Concat(config.CheckServe(s), readable(s, "serve.tls.cert", s.Serve.Cert), readable(s, "serve.tls.key", s.Serve.Key))
	if s.Serve.Cert != "" && len(all) == 0 {
		if _, err := tls.LoadX509KeyPair(s.Serve.Cert, s.Serve.Key); err != nil {
			all.Add(s.Origin("serve.tls.cert"), "serve.tls: the certificate cannot be used (%v): name one in PEM and its key", err)
		}
	}
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
	return s.Identity.AcceptsTokens() || s.Store.Shared() || namesKeys(s)
}

// namesKeys reports whether a key file is configured, or is in the default place and used.
func namesKeys(s *config.Settings) bool {
	if !s.IsDefaultKeysFile() {
		return true
	}
	_, err := os.Stat(s.Identity.KeysFile)
	return !cli.IsMissing(err) && !s.Store.Shared()
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
