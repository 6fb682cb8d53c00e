package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/internal/headername"
	"github.com/attache-mcp/attache/proxy/remote"
)

// RemoteSettings configure the connection to a remote server.
type RemoteSettings struct {
	URL       string // empty: the server is a command
	Headers   map[string]setting.Secret
	BearerEnv string // the name of a variable
	// bearerFirst is true if BearerEnv overrides a header of the environment. A BearerEnv from a file does so only
	// in an entry under attache serve, where a header of the environment is not meant for one server.
	bearerFirst bool
	// CA, Cert and Key are absolute paths of PEM files; empty for none.
	CA, Cert, Key string
	// Connect and FirstByte are time limits for connecting and for the first byte of a
	// response; 0 means no limit.
	Connect, FirstByte time.Duration
	OAuth              OAuthSettings
}

func (s *Settings) remoteOptions() []setting.Option {
	r := &s.Server.Remote
	return []setting.Option{
		{Key: "server.url", Help: "the address of a remote server (Streamable HTTP), instead of a command after \"--\"", Value: address{setting.Text(&r.URL, remote.CheckURL), &r.URL}},
		{Key: "server.headers", Help: "headers for the remote server; a value is a text, {env: VARIABLE} or {file: FILE}, which is read again when the server refuses it", Value: headers(&r.Headers)},
		{Key: "server.bearer_env", Flag: "bearer-env", Hint: "VARIABLE", Help: "the variable that holds the bearer token for the remote server; it replaces Authorization of server.headers", Value: setting.Text(&r.BearerEnv, setting.TokenVariable)},
		{Key: "server.tls.ca", Help: "PEM file of certificate authorities that are trusted in addition to the system's", Value: setting.Path(&r.CA)},
		{Key: "server.tls.cert", Help: "PEM file of the client certificate for the remote server", Value: setting.Path(&r.Cert)},
		{Key: "server.tls.key", Help: "PEM file of its key", Value: setting.Path(&r.Key)},
		{Key: "server.timeouts.connect", Help: "how long a connection to the remote server may take", Value: setting.Duration(&r.Connect, time.Millisecond)},
		{Key: "server.timeouts.first_byte", Help: "how long the remote server may take to begin an answer; 0s: no limit", Value: setting.Duration(&r.FirstByte, 0)},
	}
}

// checkRemote returns a problem for each setting of the remote server that lacks another one. outside is where
// server.oauth.grant is set outside of servers.
func (s *Settings) checkRemote(outside setting.Origin) setting.Problems {
	r := &s.Server.Remote
	all := s.checkPair("server.tls", r.Cert, r.Key)
	at := s.Origin("server.oauth.grant")
	// The grant may stand once for all servers, some of which are commands or ask for no login.
	own := at != outside || len(s.Applied) == 0 && r.URL != "" && s.Origin("server.url").File != ""
	if own && r.OAuth.Grant == GrantMachine && r.OAuth.ClientID == "" {
		all.Add(at, "server.oauth.grant: %s needs server.oauth.client_id, and the client's client_secret", GrantMachine)
	}
	return all
}

// IsURL reports whether a command is the address of a remote server.
func IsURL(command []string) bool { return len(command) > 0 && strings.Contains(command[0], "://") }

// LacksScheme reports whether a command is probably a URL without its scheme: it begins with a
// host, and no such file exists.
func LacksScheme(command string) bool {
	host, _, found := strings.Cut(command, "/")
	name, _, port := strings.Cut(host, ":")
	if !found && !port || strings.HasPrefix(name, ".") || name != "localhost" && !strings.Contains(name, ".") {
		return false
	}
	_, err := os.Stat(command)
	return errors.Is(err, fs.ErrNotExist)
}

func headers(to *map[string]setting.Secret) setting.Value {
	return setting.ByName[setting.Secret]{
		To: to, Value: setting.SecretValue, Check: checkHeaderName,
		Canonical: http.CanonicalHeaderKey, Pattern: headername.Pattern,
	}
}

func checkHeaderName(name string) error {
	switch {
	case !headername.IsValid(name):
		return fmt.Errorf("%q is not the name of a header: write one such as X-Api-Key", name)
	case clientconfig.IsOwnHeader(name):
		return fmt.Errorf("%s is set by attache: remove it", name)
	}
	return nil
}

func environmentHeaders(p cli.Process) (http.Header, error) {
	all := http.Header{}
	for _, entry := range p.Env {
		variable, name, value := environmentHeader(p, entry)
		if value == "" || clientconfig.IsRepeatedHeader(name) {
			continue
		}
		if err := cmp.Or(checkHeaderName(name), setting.CheckSecret(value)); err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		all[name] = []string{value}
	}
	return all, nil
}

// environmentHeader returns the header that a variable of the environment holds or names. entry is the variable and
// its value. If it has no header, value is empty.
func environmentHeader(p cli.Process, entry string) (variable, name, value string) {
	variable, value, _ = strings.Cut(entry, "=")
	name, ok := strings.CutPrefix(variable, clientconfig.HeaderPrefix)
	if !ok {
		if name, ok = strings.CutPrefix(variable, clientconfig.EnvHeaderPrefix); !ok {
			return variable, "", ""
		}
		value = strings.TrimSpace(p.Getenv(value)) // clients omit variables that are not set
	}
	return variable, http.CanonicalHeaderKey(clientconfig.HeaderOf(name)), value
}

// HeaderVariables returns the names of the variables in env that hold headers for a remote server, and of those that
// these name. A front removes them from the environment of its servers.
func HeaderVariables(env []string) (names []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if named := strings.HasPrefix(name, clientconfig.EnvHeaderPrefix); named && value != "" {
			names = append(names, value)
		} else if !named && !strings.HasPrefix(name, clientconfig.HeaderPrefix) {
			continue
		}
		names = append(names, name)
	}
	return names
}

// authorizationVariable returns the variable with the Authorization header for the remote server, if there is one.
func authorizationVariable(p cli.Process) setting.Origin {
	for _, entry := range p.Env {
		if variable, name, value := environmentHeader(p, entry); name == "Authorization" && value != "" {
			return setting.Origin{Name: variable}
		}
	}
	return setting.Origin{}
}

// setTarget sets which remote server the settings are for. command is the command after "--".
func (s *Settings) setTarget(command []string) {
	outside := s.placed()
	s.outside = append(s.outside, outside.variables()...)
	switch {
	case IsURL(command) && s.Server.Remote.URL != command[0]:
		s.Server.Remote.URL, s.origins["server.url"] = command[0], setting.Origin{Name: "--"}
	case len(command) > 0 && !IsURL(command) && s.Server.Remote.URL != "":
		s.Server.Remote.URL, s.origins["server.url"] = "", setting.Origin{Name: "--"}
	}
	s.dropCredentials(outside)
}

// replaceBearer removes the bearer token of before if an Authorization header was read since, which replaces it.
func (s *Settings) replaceBearer(before placedRemote) {
	same := func(key string) bool { return s.Origin(key) == before.at[key] }
	if r := &s.Server.Remote; r.BearerEnv != "" && same("server.bearer_env") && !same("server.headers") && r.Headers["Authorization"] != (setting.Secret{}) {
		s.outside = append(s.outside, r.BearerEnv) // it is still withheld from servers
		r.BearerEnv = ""
		delete(s.origins, "server.bearer_env")
	}
}

// A placedRemote has remote settings and, for each key, the place where it was set.
type placedRemote struct {
	RemoteSettings
	at map[string]setting.Origin
}

func (s *Settings) placed() placedRemote { return placedRemote{s.Server.Remote, maps.Clone(s.origins)} }

// dropCredentials removes the credentials that s has from the settings before, unless their address has the same
// origin as that of s: a token is for one server.
func (s *Settings) dropCredentials(before placedRemote) {
	r := &s.Server.Remote
	if sameOrigin(before.URL, r.URL) {
		return
	}
	// drop warns of the first key, and removes the origins of all.
	drop := func(keys ...string) {
		if r.URL != "" {
			at := s.Origin(keys[0])
			for _, login := range loginKeys() {
				if strings.HasPrefix(login, keys[0]+".") {
					at = cmp.Or(at, s.Origin(login))
				}
			}
			s.Warnings.Add(at, "%s is not for this server: write it beside the server.url that it is for, or under servers", keys[0])
		}
		for _, key := range keys {
			delete(s.origins, key)
		}
	}
	// An equal value that was written since, as beside the new address, is not removed.
	has := func(key string) bool { return s.Origin(key) == before.at[key] }
	if before.Headers != nil && has("server.headers") {
		drop("server.headers")
		r.Headers = nil
	}
	if before.BearerEnv != "" && has("server.bearer_env") {
		drop("server.bearer_env")
		r.BearerEnv = ""
	}
	if before.Cert != "" && has("server.tls.cert") {
		drop("server.tls.cert", "server.tls.key")
		r.Cert, r.Key = "", ""
	}
	id, secret := has("server.oauth.client_id"), has("server.oauth.client_secret")
	if o := &r.OAuth; o.hasLogin() && !slices.ContainsFunc(loginKeys(), func(key string) bool { return !has(key) }) {
		drop("server.oauth")
		all := *o
		*o = defaultOAuth()
		if !has("server.oauth.grant") {
			o.Grant = all.Grant
		}
		if !has("server.oauth.redirect") {
			o.Redirect = all.Redirect
		}
		if !has("server.oauth.store") {
			o.Store = all.Store
		}
		maps.DeleteFunc(s.origins, func(key string, _ setting.Origin) bool { return Below(key, "server.oauth") && has(key) })
	}
	if o := &r.OAuth; secret && o.ClientSecret != (setting.Secret{}) { // only scopes, say, were replaced
		drop("server.oauth.client_secret")
		o.ClientSecret = setting.Secret{}
		if id {
			o.ClientID = ""
			delete(s.origins, "server.oauth.client_id")
		}
	}
}

// sameOrigin reports whether two addresses have the same scheme, host and port.
func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Host, v.Host)
}

// Header returns the headers for the remote server. Those of the environment take precedence over
// those of the settings. It reads files each time, because they may change.
func (r *RemoteSettings) Header(p cli.Process) (http.Header, error) {
	all, err := environmentHeaders(p)
	if err != nil {
		return nil, err
	}
	if r.BearerEnv != "" && (r.bearerFirst || all["Authorization"] == nil) {
		token, err := setting.Secret{Env: r.BearerEnv}.Value(p)
		if err != nil {
			return nil, fmt.Errorf("server.bearer_env: %w", err)
		}
		all["Authorization"] = []string{"Bearer " + token}
	}
	for name, secret := range r.Headers {
		if all[name] != nil {
			continue
		}
		value, err := secret.Value(p)
		if err != nil {
			return nil, fmt.Errorf("server.headers.%s: %w", name, err)
		}
		all[name] = []string{value}
	}
	return all, nil
}

// secrets returns the client secret, the values of headers, and the part of each value after the
// first space, such as the token after "Bearer".
func (r *RemoteSettings) secrets(p cli.Process) (all []string) {
	if secret, err := r.OAuth.ClientSecret.Value(p); err == nil && secret != "" {
		all = append(all, secret)
	}
	h, _ := r.Header(p) // errors are reported when the headers are used
	for name := range h {
		value := h.Get(name)
		all = append(all, value)
		if _, token, ok := strings.Cut(value, " "); ok {
			all = append(all, token)
		}
	}
	return all
}

// variables returns the names of the variables that hold headers, a token or a secret.
func (r *RemoteSettings) variables() (names []string) {
	names = append(names, r.BearerEnv, r.OAuth.ClientSecret.Env)
	for _, header := range slices.Sorted(maps.Keys(r.Headers)) {
		names = append(names, r.Headers[header].Env)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// RemoteVariables returns the names of the variables that hold headers, tokens and secrets for
// remote servers, in all entries, each once. A front removes them from the environment of its servers.
func (s *Settings) RemoteVariables() []string {
	names := slices.Concat(s.outside, s.Server.Remote.variables())
	for _, e := range s.Servers {
		names = append(names, e.variables...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CommandOr returns command or, if it is empty, the address in the settings; nil if there is
// neither.
func (s *Settings) CommandOr(command []string) []string {
	if len(command) == 0 && s.Server.Remote.URL != "" {
		return []string{s.Server.Remote.URL}
	}
	return command
}
