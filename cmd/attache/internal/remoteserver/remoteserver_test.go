package remoteserver

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A private authority, a client certificate and HTTP/2 are used as configured.
func TestU29TLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"proto":"`+r.Proto+`"}}`)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	ca, key := writePair(t, server.TLS.Certificates[0])
	for _, c := range []struct {
		name     string
		settings config.RemoteSettings
		want     string
	}{
		{"all of it", config.RemoteSettings{CA: ca, Cert: ca, Key: key}, `{"jsonrpc":"2.0","id":1,"result":{"proto":"HTTP/2.0"}}`},
		{"unknown authority", config.RemoteSettings{Cert: ca, Key: key}, `certificate signed by unknown authority: name the file of the authority in server.tls.ca`},
		{"no certificate", config.RemoteSettings{CA: ca}, `"code":-32603`},
		{"no such key", config.RemoteSettings{CA: ca, Cert: ca, Key: key + "x"}, `server.tls.cert: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := config.DefaultSettings("")
			c.settings.URL = server.URL
			s.Server.Remote = c.settings
			o, err := Options(cli.Process{StateDir: t.TempDir()}, s, slog.New(slog.DiscardHandler))
			testkit.Check(t, err)
			if got := answer(t, o); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// answer makes a call and returns the answer.
func answer(t *testing.T, o remote.Options) string {
	t.Helper()
	r, err := remote.Start(o)
	testkit.Check(t, err)
	defer r.Stop()
	io.WriteString(r.Stdin(), `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`+"\n")
	line, err := bufio.NewReader(r.Stdout()).ReadString('\n')
	testkit.Check(t, err)
	return line
}

// The new value of a file is sent, and is a secret of the log and of recordings.
func TestReplacedFileIsSecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-new-value" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "header")
	write := func(text string) {
		testkit.Check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("Bearer the-old-value")
	p, s := cli.Process{Tokens: &cli.Tokens{}}, config.DefaultSettings("")
	s.Server.Remote.URL = server.URL
	s.Server.Remote.Headers = map[string]setting.Secret{"Authorization": {File: file}, "X-Team": {Text: "shop"}}
	s.Server.Remote.OAuth.ClientSecret = setting.Secret{File: file}
	o, err := Options(p, s, slog.New(slog.DiscardHandler))
	testkit.Check(t, err)
	write("Bearer the-new-value")
	if got := answer(t, o); !strings.Contains(got, `"result"`) {
		t.Errorf("got %s", got)
	}
	if all := p.Tokens.All(); !slices.Equal(all, []string{"Bearer the-new-value", "the-new-value"}) {
		t.Errorf("the secrets are %q", all)
	}
	write("another-secret")
	if _, err := s.Server.Remote.OAuth.Secret(p)(); err != nil || !slices.Contains(p.Tokens.All(), "another-secret") {
		t.Errorf("error %v, the secrets are %q", err, p.Tokens.All())
	}
}

// writePair writes a certificate and its key to files.
func writePair(t *testing.T, pair tls.Certificate) (cert, key string) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	testkit.Check(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		testkit.Check(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// Mistakes in the settings are reported before a session begins.
func TestOptionsRefused(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.pem")
	testkit.Check(t, os.WriteFile(bad, []byte("no certificate"), 0o600))
	for want, settings := range map[string]config.RemoteSettings{
		"server.tls.ca: " + bad + " has no certificate in it: name a PEM file": {CA: bad},
		"server.headers.X-A: the variable NONE is not set":                     {Headers: map[string]setting.Secret{"X-A": {Env: "NONE"}}},
	} {
		s := config.DefaultSettings("")
		s.Server.Remote = settings
		_, err := Options(cli.Process{}, s, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
