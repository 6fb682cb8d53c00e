// Package remoteserver makes the connection to a remote server that the settings
// describe.
package remoteserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Options returns how to reach the remote server of the settings. One Options is for any
// number of sessions, which share connections.
func Options(p cli.Process, s *config.Settings, log *slog.Logger) (remote.Options, error) {
	r := &s.Server.Remote
	roots, err := authorities(r.CA)
	if err != nil {
		return remote.Options{}, err
	}
	if _, err := r.Header(p); err != nil {
		return remote.Options{}, err
	}
	return remote.Options{
		URL:         r.URL,
		Header:      http.Header{"User-Agent": {"attache"}},
		Credentials: &credentials{p, r},
		Transport: remote.NewTransport(remote.TransportOptions{
			Proxy:   http.ProxyFromEnvironment,
			TLS:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: certificate(r.Cert, r.Key)},
			Connect: r.Connect,
		}),
		Hold:      int(s.Limits.Hold),
		FirstByte: r.FirstByte,
		Log:       log,
	}, nil
}

// authorities returns those of the system and of a file, nil for the system's alone.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, _, err := textfile.Read(path, textfile.Rules{Max: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("server.tls.ca: %s: %w: correct the path", path, err)
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

// certificate returns what gives the server our certificate, nil for none. It is read
// for each connection, as it may be replaced.
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

// credentials are the headers that the settings and the environment have.
type credentials struct {
	cli.Process
	settings *config.RemoteSettings
}

// Set implements remote.Credentials.
func (c *credentials) Set(_ context.Context, h http.Header) error {
	all, err := c.settings.Header(c.Process)
	for name, values := range all {
		h[name] = values
	}
	return err
}

// Refused implements remote.Credentials: a file may hold another token now.
func (c *credentials) Refused(_ context.Context, r remote.Refusal) (bool, error) {
	now, err := c.settings.Header(c.Process)
	for name := range now {
		if now.Get(name) != r.Sent.Get(name) {
			return true, nil
		}
	}
	return false, err
}
