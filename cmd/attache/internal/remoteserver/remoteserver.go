// Package remoteserver turns the settings of a remote server into the options of its connections.
package remoteserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/login"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Options returns the options for sessions with the remote server of the settings. Sessions with
// the same options share connections.
func Options(p cli.Process, s *config.Settings, log *slog.Logger) (remote.Options, error) {
	return options(p, s, log, true)
}

// SharedOptions is like Options, for sessions of other people. They use the headers and client
// credentials of the configuration, but not the login of the user who runs attache.
func SharedOptions(p cli.Process, s *config.Settings, log *slog.Logger) (remote.Options, error) {
	return options(p, s, log, false)
}

func options(p cli.Process, s *config.Settings, log *slog.Logger, own bool) (remote.Options, error) {
	r := &s.Server.Remote
	t, h, err := connection(p, r)
	if err != nil {
		return remote.Options{}, err
	}
	var credentials remote.Credentials = &headers{Process: p, settings: r, header: h}
	if h.Get("Authorization") == "" && (own || r.OAuth.Grant == config.GrantMachine) {
		credentials = combinedCredentials{credentials, login.NewCredentials(loginOptions(p, r, t.Transport, h), log)}
	}
	wait := s.Server.Restart.Hold
	if s.Server.Restart.On == "never" {
		wait = 0
	}
	return remote.Options{
		URL:         r.URL,
		Header:      http.Header{"User-Agent": {"attache"}},
		Credentials: credentials,
		Transport:   t,
		Hold:        int(s.Limits.Hold),
		FirstByte:   r.FirstByte,
		Wait:        wait,
		Log:         log,
	}, nil
}

// connection returns the HTTP transport and the headers that the settings describe.
func connection(p cli.Process, r *config.RemoteSettings) (*remote.Transport, http.Header, error) {
	roots, err := authorities(r.CA)
	if err != nil {
		return nil, nil, err
	}
	t := remote.NewTransport(remote.TransportOptions{
		Proxy:   proxy(p),
		TLS:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: certificate(r.Cert, r.Key)},
		Connect: r.Connect,
	})
	h, err := r.Header(p)
	return t, h, err
}

// combinedCredentials combine the headers of the settings with the token of a login.
type combinedCredentials struct{ headers, login remote.Credentials }

// Set implements remote.Credentials.
func (b combinedCredentials) Set(ctx context.Context, h http.Header) error {
	if err := b.headers.Set(ctx, h); err != nil {
		return err
	}
	return b.login.Set(ctx, h)
}

// Refused implements remote.Credentials.
func (b combinedCredentials) Refused(ctx context.Context, r remote.Refusal) (bool, error) {
	if again, err := b.headers.Refused(ctx, r); again || err != nil {
		return again, err
	}
	return b.login.Refused(ctx, r)
}

// authorities returns the certificate authorities of the system and those in a file. It returns nil,
// which stands for those of the system, if path is empty.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, _, err := textfile.Read(path, textfile.Rules{Max: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("server.tls.ca: %s: %w", path, cli.Unreadable(err))
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("server.tls.ca: %s has no certificate in it: name a PEM file", path)
	}
	return roots, nil
}

// certificate returns a function that reads the client certificate, nil for none. It is called for
// each connection, because the files may be replaced.
func certificate(cert, key string) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if cert == "" {
		return nil
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("server.tls.cert: %w", err)
		}
		return &pair, nil
	}
}

// headers sets the headers from the settings and the environment.
type headers struct {
	cli.Process
	settings *config.RemoteSettings

	mu     sync.Mutex
	header http.Header
}

// Set implements remote.Credentials.
func (c *headers) Set(_ context.Context, h http.Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(h, c.header)
	return nil
}

// Refused implements remote.Credentials. It reads the headers again, because a file may hold a new
// token, which must not appear in a log or a recording either.
func (c *headers) Refused(_ context.Context, r remote.Refusal) (again bool, err error) {
	now, err := c.settings.Header(c.Process)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = now
	for name := range now {
		if value := now.Get(name); value != r.Sent.Get(name) {
			again = true
			_, token, _ := strings.Cut(value, " ") // after "Bearer"
			c.Tokens.Add(value, token)
		}
	}
	return again, nil
}

// Logins returns the store of the user's logins. Its Dir is empty if there is no state directory.
func Logins(p cli.Process) login.Store {
	return login.Store{Dir: p.StatePath("logins")}
}

// Login returns the options for a login to the remote server of the settings.
func Login(p cli.Process, s *config.Settings) (login.Options, error) {
	r := &s.Server.Remote
	t, h, err := connection(p, r)
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
