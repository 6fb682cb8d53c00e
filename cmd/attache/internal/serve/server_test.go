package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/session"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A runningService is a service that accepts requests.
type runningService struct {
	*service
	url string // of the endpoint
}

// start starts a service with a configuration in front of echo servers, at path if one is given.
func start(t *testing.T, config string, path ...string) *runningService {
	t.Helper()
	return startLogging(t, slog.New(slog.DiscardHandler), config, path...)
}

// A server that a front starts does not get the variables for remote servers of any entry, unless
// the operator sets them for that server.
func TestRemoteVariablesAreKept(t *testing.T) {
	p := attachetest.WriteConfig(t, `
server: {env: {REMOTE_CLIENT: own}}
servers:
  one: {match: {url: "https://one.example/*"}, server: {headers: {X-Key: {env: REMOTE_AUTH}}, bearer_env: REMOTE_BEARER}}
  two: {match: {url: "https://two.example/*"}, server: {oauth: {client_id: x, client_secret: {env: REMOTE_CLIENT}, issuer: "https://a.example"}}}
`)
	p.Env = append(p.Env, "REMOTE_AUTH=secret-1", "REMOTE_BEARER=secret-2", "REMOTE_CLIENT=secret-3", "OTHER=kept",
		"ATTACHE_HEADER_X_Key=secret-4", "ATTACHE_ENV_HEADER_Authorization=NAMED", "NAMED=secret-5", "ATTACHE_ENV_HEADER_X_Team=")
	s := newTestService(t, p)
	var got []string
	s.endpoints[0].start = func(_ front.Opening, env func() []string) (proxy.Upstream, error) {
		got = env()
		return echoServer(1, got), nil
	}
	web := httptest.NewServer(s.handler())
	defer web.Close()
	(&runningService{s, web.URL + "/mcp"}).post(t, http.DefaultClient, initialize)
	all := strings.Join(got, "\n")
	if strings.Contains(all, "secret") || !strings.Contains(all, "OTHER=kept") || !strings.Contains(all, "REMOTE_CLIENT=own") {
		t.Errorf("the server has %q", got)
	}
}

// startLogging is like start with a log.
func startLogging(t *testing.T, log *slog.Logger, config string, path ...string) *runningService {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	attachetest.WriteFile(t, file, strings.ReplaceAll(config, "DIR", dir))
	s, err := tryLoggingService(log, cli.Process{Env: []string{"ATTACHE_CONFIG=" + file}, Stderr: io.Discard}, path...)
	check(t, err)
	t.Cleanup(s.close)
	s.settings.Listen = "127.0.0.1:0"
	s.endpoints[0].start = func(_ front.Opening, env func() []string) (proxy.Upstream, error) { return echoServer(1, env()), nil }
	listeners, err := s.listen(t.Context())
	check(t, err)
	server := s.httpServer()
	go s.serveOn(server, listeners[0])
	t.Cleanup(func() { server.Close() })
	scheme := "http"
	if s.settings.Cert != "" {
		scheme = "https"
	}
	u := url.URL{Scheme: scheme, Host: listeners[0].Addr().String(), Path: s.endpoints[0].Path}
	return &runningService{s, u.String()}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`

// post sends a message and returns the response and its body.
func (r *runningService) post(t *testing.T, c *http.Client, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(body))
	check(t, err)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(q)
	check(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp, string(b)
}

// open opens a session and returns its id.
func (r *runningService) open(t *testing.T, headers ...string) string {
	t.Helper()
	resp, _ := r.post(t, http.DefaultClient, initialize, headers...)
	return resp.Header.Get("Mcp-Session-Id")
}

// TestF57Metadata requests the documents that name the issuer, and other paths.
func TestF57Metadata(t *testing.T) {
	r := start(t, `
identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: DIR/jwks.json}}
serve: {public_url: "https://mcp.example.com/mcp"}
`)
	host := strings.TrimSuffix(r.url, "/mcp")
	const want = `{"authorization_servers":["https://issuer.test"],"bearer_methods_supported":["header"],"resource":"https://mcp.example.com/mcp"}`
	for _, test := range []struct {
		path   string
		status int
		body   string
	}{
		{metadataPath + "/mcp", 200, want},
		{metadataPath, 200, want},
		{"/.well-known/oauth-authorization-server", 404, "{}"},
		{"/elsewhere", 404, "{}"},
		{"/m%63p", 404, "{}"}, // a gateway may forbid /mcp by its letters
		{"/health%7A", 404, "{}"},
		{"/healthz", 200, "ok\n"},
		{"/readyz", 200, "ok\n"},
	} {
		resp, err := http.Get(host + test.path)
		check(t, err)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != test.status || string(b) != test.body {
			t.Errorf("%s: %d %s", test.path, resp.StatusCode, b)
		}
		if kind := resp.Header.Get("Content-Type"); test.body == "{}" && kind != "application/json" { // some clients take a page as a document
			t.Errorf("%s: content type %s", test.path, kind)
		}
		if h := resp.Header; test.body == want && (h.Get("Content-Type") != "application/json" || h.Get("Access-Control-Allow-Origin") != "*") { // clients may be web pages
			t.Errorf("%s: headers %v", test.path, h)
		}
	}
	if resp, err := http.Head(host + metadataPath); err != nil || resp.StatusCode != 200 {
		t.Errorf("HEAD: %v (%v)", resp, err)
	}
	resp, err := http.Post(host+metadataPath, "text/plain", nil)
	if err != nil || resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %v (%v)", resp, err)
	}
	for name, status := range map[string]int{"mcp.example.com": 401, "evil.example": 403} {
		q := httptest.NewRequest(http.MethodPost, "http://"+name+"/mcp", strings.NewReader(initialize))
		q = q.WithContext(context.WithValue(q.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}))
		w := httptest.NewRecorder()
		if r.handler().ServeHTTP(w, q); w.Code != status {
			t.Errorf("a request to %s: %d %s", name, w.Code, w.Body)
		}
	}
	resp, _ = r.post(t, http.DefaultClient, initialize)
	if got, want := resp.Header.Get("WWW-Authenticate"), `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`; resp.StatusCode != 401 || got != want {
		t.Errorf("%d, challenge %s", resp.StatusCode, got)
	}
}

// A front whose clients use keys names no issuer: clients would try to log in there.
func TestNoMetadataForKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	attachetest.CreateKey(t, file, identity.Attributes{User: "ada"})
	r := start(t, "identity: {keys_file: "+file+"}\nserve: {public_url: 'https://mcp.example.com/mcp'}\n")
	resp, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + metadataPath)
	check(t, err)
	if resp.Body.Close(); resp.StatusCode != 404 {
		t.Errorf("the metadata: %s", resp.Status)
	}
	resp, _ = r.post(t, http.DefaultClient, initialize)
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || strings.Contains(got, "metadata") {
		t.Errorf("%s, challenge %s", resp.Status, got)
	}
}

// Requests of 2026-07-28 with another conversation, or without one but with another workspace, belong to
// other sessions.
func TestConversation(t *testing.T) {
	e := start(t, "{}\n").endpoints[0]
	for params, want := range map[string]string{
		`{"_meta":{"threadId":"a","io.github.attache-mcp/workspace":"/b"}}`: "conversation a",
		`{"_meta":{"threadId":"","sessionID":"c"}}`:                         "conversation c",
		`{"_meta":{"io.github.attache-mcp/workspace":"/b"}}`:                "workspace /b",
		`{"_meta":{}}`: "",
		`{}`:           "",
	} {
		var m wire.Message
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping","params":`+params+"}\n"))
		new(wire.Scanner).Look(&m)
		if got := e.conversation(&m); got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
}

// A proxy may remove a prefix of the path. Clients look for the metadata at the path that they see, and the proxy may
// pass that with or without the prefix.
func TestMetadataBehindPrefix(t *testing.T) {
	r := start(t, `
identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: DIR/jwks.json}}
serve: {public_url: "https://example.com/tools/mcp"}
`)
	for path, status := range map[string]int{"": 200, "/mcp": 200, "/tools/mcp": 200, "/tools": 404} {
		w := httptest.NewRecorder()
		if r.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, metadataPath+path, nil)); w.Code != status {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	r = start(t, "identity: {jwt: {issuer: 'https://issuer.test', audience: attache, jwks: DIR/jwks.json}}\n")
	w := httptest.NewRecorder()
	if r.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, metadataPath+"/mcp", nil)); w.Code != 404 {
		t.Errorf("without a public URL: %d %s", w.Code, w.Body)
	}
}

// A fakeListener is a listener with any address.
type fakeListener struct {
	net.Listener
	address net.Addr
}

func (l fakeListener) Addr() net.Addr { return l.address }

// On an inherited socket that other machines can reach, credentials are required.
func TestInheritedAddresses(t *testing.T) {
	s := newTestService(t, cli.Process{Stderr: io.Discard})
	s.settings.Listen = "0.0.0.0:8333" // is not used
	for _, test := range []struct {
		address net.Addr
		ok      bool
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, true},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 1}, true},
		{&net.UnixAddr{Name: "/run/attache.sock", Net: "unix"}, true},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 1}, false},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, false},
	} {
		s.Listeners = []net.Listener{fakeListener{address: &net.TCPAddr{IP: net.IPv6loopback}}, fakeListener{address: test.address}}
		if err := s.checkAddresses(); (err == nil) != test.ok {
			t.Errorf("%v: %v", test.address, err)
		}
	}
}

// Revoking a key ends its sessions immediately, and only the key that opened a session can use it.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.yaml")
	var keys []string
	var last identity.Entry
	for _, user := range []string{"bob", "ada"} {
		key, entry := attachetest.CreateKey(t, file, identity.Attributes{User: user})
		keys, last = append(keys, key), entry
	}
	r := start(t, "identity: {keys_file: "+file+"}\n")
	session := r.open(t, "Authorization", "Bearer "+keys[1])
	call := func(key string) int {
		resp, _ := r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+key, "Mcp-Session-Id", session)
		return resp.StatusCode
	}
	if got := call(keys[1]); got != 200 {
		t.Error("the session's key:", got)
	}
	if got := call(keys[0]); got != 404 {
		t.Error("another key:", got)
	}
	if got := call("atk_no"); got != 401 {
		t.Error("an unknown key:", got)
	}
	check(t, identity.Revoke(file, last.ID, time.Now()))
	r.endpoints[0].reloader.Reload()
	if got := call(keys[1]); got != 401 {
		t.Error("a revoked key:", got)
	}
	expired, _, err := identity.Create(file, identity.Attributes{User: "eve"}, "", time.Second, time.Now().Add(-time.Hour))
	check(t, err)
	for state, key := range map[string]string{"revoked": keys[1], "expired": expired} {
		if _, err := r.endpoints[0].authenticate(t.Context(), key); !errors.Is(err, front.ErrEnded) {
			t.Errorf("a key that is %s: %v", state, err)
		}
	}
}

// The operator learns at the start that no key can be checked, that serve.scopes has no effect, and
// later that keys were made which no client needs yet.
func TestKeysWarnings(t *testing.T) {
	for _, test := range []struct{ config, want string }{
		{"identity: {keys_file: DIR/none.yaml}\n", "keys cannot be checked: clients get an error until attache can check them"},
		{"serve: {scopes: [use]}\n", "serve.scopes has no effect"},
		{"serve: {login_scopes: [openid]}\n", "serve.login_scopes has no effect"},
		{"serve: {public_url: https://tools.example/mcp}\n", "serve.public_url is set, but clients need no credential"},
		{"{}\n", "there are keys or tokens now, but clients need none until attache is started again"},
	} {
		var out bytes.Buffer
		r := startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), test.config)
		if e := r.endpoints[0]; test.config == "{}\n" {
			if _, _, err := identity.Create(e.Settings.Identity.KeysFile, identity.Attributes{User: "ada"}, "", 0, time.Now()); err != nil {
				t.Fatal(err)
			}
			e.reloader.Reload()
			e.reloader.Reload()
		} else {
			e.reloader.Reload()
		}
		if got := out.String(); strings.Count(got, test.want) != 1 || strings.Contains(got, "there are keys or tokens now") != (test.config == "{}\n") {
			t.Errorf("%s: the log has %q", test.config, got)
		}
	}
}

// The operator learns at the start which settings have no effect.
func TestWarnings(t *testing.T) {
	for config, want := range map[string]string{
		"{}\n": "", "session: {id: x}\n": "session.id has no effect", "teams: {enabled: true}\n": "teams.enabled has no effect",
		"serve: {path: /x}\n": "",
	} {
		var out bytes.Buffer
		startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), config)
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "has no effect") != (want != "") {
			t.Errorf("%q: the log has %q", config, got)
		}
	}
}

// If a reload names an issuer or a key file, the operator learns that clients need no credential until the
// next start.
func TestReloadNamesCredentials(t *testing.T) {
	for _, identity := range []string{"{jwt: {issuer: 'https://issuer.test', audience: attache, jwks: jwks.json}}", "{keys_file: none.yaml}"} {
		var out bytes.Buffer
		r := startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), "{}\n")
		attachetest.WriteFile(t, r.endpoints[0].Settings.File, "identity: "+identity+"\n")
		r.endpoints[0].reloader.Reload()
		if resp, _ := r.post(t, http.DefaultClient, initialize); resp.StatusCode != 200 || !strings.Contains(out.String(), "but clients need none") {
			t.Errorf("%s: %s, the log has %q", identity, resp.Status, out.String())
		}
	}
}

// If the settings name no key file, a reload does not warn of keys: there are none.
func TestReloadWithoutKeyFile(t *testing.T) {
	var out bytes.Buffer
	r := startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), "identity: {keys_file: ''}\n")
	r.endpoints[0].reloader.Reload()
	if strings.Contains(out.String(), "there are keys or tokens now") {
		t.Error(out.String())
	}
}

// If clients use tokens and there is no key file, an API key is refused with 401, and the log does
// not warn of the missing file.
func TestTokensWithoutKeyFile(t *testing.T) {
	var out bytes.Buffer
	r := startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), `identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: DIR/jwks.json}}`)
	if resp, body := r.post(t, http.DefaultClient, initialize, "Authorization", "Bearer atk_a_b"); resp.StatusCode != 401 {
		t.Error(resp.Status, body)
	}
	if strings.Contains(out.String(), "keys cannot be checked") {
		t.Error(out.String())
	}
	// There may be keys in a file that cannot be read.
	file := r.endpoints[0].Settings.Identity.KeysFile
	attachetest.WriteFile(t, file, "keys: none\n")
	if resp, body := r.post(t, http.DefaultClient, initialize, "Authorization", "Bearer atk_a_b"); resp.StatusCode != 503 {
		t.Error(resp.Status, body)
	}
	check(t, os.Remove(file))
	// A token cannot be checked, because there is no key set either.
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"RS256","kid":"a"}`)) + "." + part([]byte(`{"iss":"https://issuer.test","aud":"attache"}`)) + "." + part([]byte("signature"))
	if resp, body := r.post(t, http.DefaultClient, initialize, "Authorization", "Bearer "+token); resp.StatusCode != 503 {
		t.Error(resp.Status, body)
	}
}

// If clients use keys and the key file is removed, no key can be checked.
func TestKeyFileRemoved(t *testing.T) {
	e := start(t, "{}\n").endpoints[0]
	file := e.Settings.Identity.KeysFile
	key, _ := attachetest.CreateKey(t, file, identity.Attributes{User: "ada"})
	if _, err := e.authenticate(t.Context(), key); err != nil {
		t.Error(err)
	}
	check(t, os.Remove(file))
	e.reloader.Reload()
	if _, err := e.authenticate(t.Context(), key); !errors.Is(err, front.ErrUnavailable) {
		t.Error(err)
	}
}

// A key file that a reload names, and that is missing, is an error also if clients can use tokens.
func TestTokensWithNamedKeyFile(t *testing.T) {
	const jwt = "jwt: {issuer: 'https://issuer.test', audience: attache, jwks: jwks.json}}\n"
	file := filepath.Join(t.TempDir(), "config.yaml")
	attachetest.WriteFile(t, file, "servers: {git: {server: {command: [cat]}}}\nidentity: {"+jwt)
	s := startServers(t, io.Discard, file, "git")
	defer s.close()
	e := s.endpoints[0]
	if _, err := e.authenticate(t.Context(), "atk_a_b"); !errors.Is(err, identity.ErrUnknownKey) {
		t.Error(err)
	}
	attachetest.WriteFile(t, file, "servers: {git: {server: {command: [cat]}}}\nidentity: {keys_file: none.yaml, "+jwt)
	e.reloader.Reload()
	if _, err := e.authenticate(t.Context(), "atk_a_b"); !errors.Is(err, front.ErrUnavailable) {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	if s.ready(w, nil); w.Code != 503 {
		t.Error(w.Code)
	}
}

// A front is ready as soon as it can read its API keys, or if it needs none.
func TestReadyWithKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	ready := func(r *runningService, wantStatus int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		r.ready(w, nil)
		if w.Code != wantStatus || w.Body.String() != want {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	}
	ready(start(t, "{}\n"), 200, "ok\n")
	r := start(t, "identity: {keys_file: "+file+"}\n")
	ready(r, 503, "the API keys cannot be read\n")
	attachetest.CreateKey(t, file, identity.Attributes{User: "ada"})
	ready(r, 200, "ok\n")
	r.endpoints[0].front.Drain(t.Context())
	ready(r, 503, "draining\n")
}

// A canceledContext returns err from its first call of Err, and context.Canceled from later ones.
type canceledContext struct {
	context.Context
	err error
}

func (c *canceledContext) Err() error {
	err := c.err
	c.err = context.Canceled
	return err
}

// If the client disconnects before its key is checked, the error has the cause; a later disconnect
// is ignored.
func TestClientDisconnectsWhileKeyIsChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	key, _ := attachetest.CreateKey(t, file, identity.Attributes{User: "ada"})
	e := start(t, "identity: {keys_file: "+file+"}\n").endpoints[0]
	for _, before := range []error{context.Canceled, nil} {
		who, err := e.authenticate(&canceledContext{t.Context(), before}, key)
		switch {
		case before == nil && (err != nil || who.ID == ""):
			t.Errorf("after the check: %+v, %v", who, err)
		case before != nil && (!errors.Is(err, front.ErrUnavailable) || !errors.Is(err, context.Canceled)):
			t.Errorf("before the check: %v", err)
		}
	}
}

// The log names the client whose call was refused.
func TestLogNamesClients(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	check(t, err)
	defer log.Close()
	r := startLogging(t, slog.New(slog.NewTextHandler(log, nil)), "identity: {keys_file: "+file+"}\naccess: {rules: [{tools: [whoami], deny: true}]}\n")
	for _, user := range []string{"bob", "ada"} {
		key, _ := attachetest.CreateKey(t, file, identity.Attributes{User: user})
		r.endpoints[0].reloader.Reload()
		session := r.open(t, "Authorization", "Bearer "+key)
		r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}`, "Authorization", "Bearer "+key, "Mcp-Session-Id", session)
		want := regexp.MustCompile(`a call was refused.* client=` + session[:8] + ` user=` + user + ` tool=whoami`)
		got, err := os.ReadFile(log.Name())
		check(t, err)
		if !want.Match(got) || bytes.Contains(got, []byte(session)) {
			t.Errorf("the log lacks %v or has a complete session id:\n%s", want, got)
		}
	}
}

// Clients that try again and again do not fill the log of a server that cannot be started.
func TestLogOfStartsIsLimited(t *testing.T) {
	var out bytes.Buffer
	e := startLogging(t, slog.New(slog.NewTextHandler(&out, nil)), "{}\n").endpoints[0]
	e.Command = []string{filepath.Join(t.TempDir(), "none")}
	for range 100 {
		if _, err := e.startProcess(front.Opening{}, func() []string { return nil }); err == nil {
			t.Fatal("a server without a program was started")
		}
	}
	if n := strings.Count(out.String(), "the server could not be started"); n != 20 {
		t.Errorf("%d lines for 100 starts", n)
	}
}

// With several servers, each line of the log and of a server's stderr contains the name of the server. The
// log does not contain its secrets.
func TestLogNamesServers(t *testing.T) {
	dir := t.TempDir()
	file, keys := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "keys.yaml")
	config := "identity: {keys_file: keys.yaml}\nserve: {scopes: [use]}\naccess: {rules: [{tools: ['*'], deny: true}]}\nservers:\n" +
		"  git: {server: {command: [" + dir + "/none], env: {GIT_TOKEN: first-of-two-secrets}}}\n" +
		"  shop: {server: {command: [/bin/sh, -c, 'printf \"one\\ntwo\\n\" >&2'], env: {SHOP_TOKEN: second-of-two-secrets}}}\n"
	attachetest.WriteFile(t, file, config)
	key := func(a identity.Attributes) string {
		text, _ := attachetest.CreateKey(t, keys, a)
		return "Bearer " + text
	}
	ada, bob := key(identity.Attributes{User: "ada", Permissions: []string{"use"}}), key(identity.Attributes{User: "bob"})
	out := mempipe.New(0)
	s := startServers(t, out, file, "git", "shop")
	web := httptest.NewServer(s.handler())
	git := &runningService{s, web.URL + "/git"}
	git.post(t, http.DefaultClient, initialize, "Authorization", bob)
	git.post(t, http.DefaultClient, initialize, "Authorization", ada)
	s.endpoints[0].start = func(_ front.Opening, env func() []string) (proxy.Upstream, error) { return echoServer(1, env()), nil }
	git.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"first-of-two-secrets"}}`,
		"Authorization", ada, "Mcp-Session-Id", git.open(t, "Authorization", ada))
	(&runningService{s, web.URL + "/shop"}).post(t, http.DefaultClient, initialize, "Authorization", ada)
	web.Close()
	s.close()
	got := ""
	for !strings.HasSuffix(got, "shop: two\n") { // the copy of a server's stderr may be late
		line, err := out.ReadLine(time.Minute)
		if err != nil {
			t.Fatalf("%v after %s", err, got)
		}
		got += string(line)
	}
	for _, want := range []string{
		`a request was refused server=git err="the credential has too few rights: user ."bob." lacks use" from=127.0.0.1:`,
		`the server could not be started server=git client=[0-9a-f]{8} user=ada err=`,
		`a call was refused server=git client=[0-9a-f]{8} user=ada tool=scrubbed`,
		`(?m)^shop: one\nshop: two$`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no log line matches %s", want)
		}
	}
	if t.Failed() || strings.Contains(got, "-of-two-secrets") {
		t.Errorf("the log:\n%s", got)
	}
}

// If a client names its conversation, only one of two servers gives the briefing. If it does not, or if the
// operator wants that (once_per: server), each server does. This is also true of Gemini CLI, where servers over stdio know the session by their parent
// process: Gemini CLI has not started attache serve.
func TestInstructionsOfServers(t *testing.T) {
	named := strings.Replace(initialize, `"params":{`, `"params":{"_meta":{"sessionID":"c"},`, 1)
	gemini := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{},"clientInfo":{"name":"gemini-cli-mcp-client","version":"1"}`, 1)
	for _, row := range []struct {
		body, settings string
		want           int
	}{{named, "", 1}, {named, ", once_per: server", 2}, {gemini, "", 2}} {
		dir := t.TempDir()
		file := filepath.Join(dir, "config.yaml")
		attachetest.WriteFile(t, filepath.Join(dir, "policies", "acme.yaml"), "scope: acme\nobjectives: [Ship]\n")
		attachetest.WriteFile(t, file, "serve: {listen: '127.0.0.1:0'}\npolicy: {dir: policies, scope: acme}\nbriefing: {channels: [instructions]"+row.settings+"}\n"+
			"servers: {git: {server: {command: [none]}}, shop: {server: {command: [none]}}}\n")
		s := startServers(t, io.Discard, file, "git", "shop")
		defer s.close()
		web := httptest.NewServer(s.handler())
		defer web.Close()
		var briefed []string
		for _, e := range s.endpoints {
			e.start = func(_ front.Opening, env func() []string) (proxy.Upstream, error) { return echoServer(1, env()), nil }
			if _, got := (&runningService{s, web.URL + e.Path}).post(t, http.DefaultClient, row.body); strings.Contains(got, "SESSION CONTEXT") {
				briefed = append(briefed, e.Path)
			}
		}
		if len(briefed) != row.want {
			t.Errorf("%s after %s the briefing is in the instructions of %q", row.settings, row.body, briefed)
		}
	}
}

// startServers returns a service for the named servers in a configuration file.
func startServers(t *testing.T, out io.Writer, file string, names ...string) *service {
	t.Helper()
	stderr := logging.NewStderr(out)
	p := cli.Process{Args: []string{"serve"}, Env: []string{"ATTACHE_CONFIG=" + file}, StateDir: t.TempDir(), Stderr: stderr}
	settings := attachetest.Load(t, p)
	o := Options{Process: p, Settings: settings, Log: logging.New(p, settings, stderr)}
	for _, name := range names {
		load := func() (*config.Settings, error) { return config.LoadServed(p, nil, name) }
		own, err := load()
		check(t, err)
		o.Servers = append(o.Servers, Server{Path: "/" + name, Command: own.Server.Command, Settings: own, Load: load})
	}
	s, err := newService(t.Context(), o)
	check(t, err)
	return s
}

// The state of a session is stored with the params of initialize, which may contain a credential, also if none is
// accepted there.
func TestCredentialsAreNotStored(t *testing.T) {
	for config, stored := range map[string]bool{"{}": true, "identity: {meta_api_key: true}": false, "identity: {meta_token: true}": false} {
		p := attachetest.WriteConfig(t, config)
		p.StateDir = t.TempDir()
		s := newTestService(t, p)
		store := s.sessionStore(&s.Servers[0])
		if (store != nil) != stored {
			t.Errorf("%s: sessions are stored: %t, want %t", config, store != nil, stored)
		}
		if store == nil {
			continue
		}
		for _, v := range []sessions.Session{
			{Initialize: `{"_meta":{"io.github.attache-mcp/token":"x"}}`},
			{Initialize: `{"_meta":{"io.github.attache-mcp\/apiKey":"x"}}`},
			{Initialize: "{}", Level: `{"_meta":{"io.github.attache-mcp/token":"x"}}`},
			{Initialize: "{}", Subscriptions: []string{`{"uri":"a"}`, `{"_meta":{"io.github.attache-mcp/token":"x"}}`}},
		} {
			k := sessions.NewKey("one", "")
			check(t, store.Save(t.Context(), k, sessions.Session{Initialize: `{"_meta":{"a":"b"}}`}))
			_, err := store.Take(t.Context(), k)
			check(t, err)
			check(t, store.Save(t.Context(), k, v))
			if _, err := store.Take(t.Context(), k); !errors.Is(err, sessions.ErrNone) {
				t.Errorf("%+v is stored: %v", v, err)
			}
		}
	}
}

// A server that crashes is restarted, and the session of its client continues.
func TestServerRestarts(t *testing.T) {
	r := start(t, "")
	var last atomic.Pointer[mempipe.Server]
	var starts atomic.Int64
	r.endpoints[0].start = func(_ front.Opening, env func() []string) (proxy.Upstream, error) {
		server := echoServer(starts.Add(1), env())
		last.Store(server)
		return server, nil
	}
	session := r.open(t)
	send := func(body string) string {
		_, reply := r.post(t, http.DefaultClient, body, "Mcp-Session-Id", session)
		return reply
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for number := range 3 {
		reply := send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}`)
		if want := fmt.Sprintf(`\"server\":%d`, number+1); !strings.Contains(reply, want) {
			t.Errorf("the reply %q lacks %q", reply, want)
		}
		last.Load().Exit(errors.New("exit status 3"))
	}
}

// attache restart must not say that it restarts a server with on: never, or a remote one.
func TestRestartsOfSeveralServers(t *testing.T) {
	at := func(name, on string, process bool) *endpoint {
		s := &config.Settings{}
		s.Server.Name, s.Server.Restart.On = name, on
		return &endpoint{Server: Server{Settings: s}, process: process}
	}
	s := &service{limits: front.DefaultLimits(), endpoints: []*endpoint{at("git", "crash", true), at("files", "never", true), at("sentry", "crash", false)}}
	r := status.Report{Server: "git, files, sentry"}
	s.describe(&r)
	for name, want := range map[string]bool{"git": true, "files": false, "sentry": false, "git, files, sentry": true, "mail": false} {
		if got := r.Restarts(name); got != (want && session.CanRestart()) {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Tokens that have expired or lack a scope are refused.
func TestF56Tokens(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "jwks.json"), string(attachetest.KeySet()))
	r := start(t, `
identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: `+dir+`/jwks.json}}
serve: {public_url: "https://mcp.example.com/mcp", scopes: ["mcp:use"]}
`)
	const metadata = `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp:use"`
	for _, test := range []struct {
		name      string
		claims    map[string]any
		status    int
		challenge string
	}{
		{"valid", map[string]any{"sub": "ada", "permissions": "mcp:use other"}, 200, ""},
		{"valid, with OAuth's claim", map[string]any{"sub": "ada", "scope": "openid mcp:use"}, 200, ""},
		{"too few rights", map[string]any{"sub": "ada", "permissions": "other"}, 403, metadata + `, error="insufficient_scope", error_description="the credential has too few rights for this server"`},
		{"expired", map[string]any{"sub": "ada", "permissions": "mcp:use", "exp": time.Now().Add(-time.Hour).Unix()}, 401, metadata + `, error="invalid_token", error_description="the credential is unknown, expired or revoked"`},
		{"another audience", map[string]any{"sub": "ada", "permissions": "mcp:use", "aud": "other"}, 401, metadata + `, error="invalid_token", error_description="the credential is unknown, expired or revoked"`},
	} {
		resp, body := r.post(t, http.DefaultClient, initialize, "Authorization", "Bearer "+attachetest.Token(test.claims))
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != test.status || got != test.challenge {
			t.Errorf("%s: %d %s\n%s", test.name, resp.StatusCode, got, body)
		}
	}
	resp, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + metadataPath)
	check(t, err)
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), `"scopes_supported":["mcp:use"]`) {
		t.Errorf("%s", b)
	}
}

// Clients are told to ask for scopes that tokens then need not have: Dex refuses a login without openid, which is in none
// of its tokens.
func TestLoginScopes(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "jwks.json"), string(attachetest.KeySet()))
	r := start(t, `
identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: `+dir+`/jwks.json}}
serve: {public_url: "https://mcp.example.com/mcp", scopes: ["mcp:use"], login_scopes: [openid, "mcp:use"]}
`)
	resp, _ := r.post(t, http.DefaultClient, initialize)
	if got := resp.Header.Get("WWW-Authenticate"); !strings.HasSuffix(got, `scope="mcp:use openid"`) {
		t.Errorf("challenge %s", got)
	}
	resp, body := r.post(t, http.DefaultClient, initialize, "Authorization", "Bearer "+attachetest.Token(map[string]any{"permissions": "mcp:use"}))
	if resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	metadata, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + metadataPath)
	check(t, err)
	defer metadata.Body.Close()
	if b, _ := io.ReadAll(metadata.Body); !strings.Contains(string(b), `"scopes_supported":["mcp:use","openid"]`) {
		t.Errorf("%s", b)
	}
}

// A token that the issuer made for the URL of a server is accepted there only.
func TestTokensForTheirServer(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	attachetest.WriteFile(t, filepath.Join(dir, "jwks.json"), string(attachetest.KeySet()))
	text := "serve: {public_url: 'https://mcp.example.com/tools/'}\nservers: {git: {server: {command: [cat]}}, sentry: {server: {command: [cat]}}}\n" +
		"identity: {jwt: {issuer: 'https://issuer.test', audience: attache, jwks: " + dir + "/jwks.json}}\n"
	attachetest.WriteFile(t, file, text)
	s := startServers(t, io.Discard, file, "git", "sentry")
	defer s.close()
	for path, status := range map[string]int{"": 404, "/git": 200, "/tools/sentry": 200} { // at the root only that of a single server
		w := httptest.NewRecorder()
		if s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, metadataPath+path, nil)); w.Code != status {
			t.Errorf("the metadata at %q: %d", path, w.Code)
		}
	}
	token := func(audience string) string {
		return attachetest.Token(map[string]any{"sub": "ada", "aud": audience})
	}
	for range 2 {
		for _, e := range s.endpoints {
			for audience, want := range map[string]error{
				"attache": nil, "https://mcp.example.com/tools" + e.Path: nil,
				"https://mcp.example.com/tools": identity.ErrAudience, "https://mcp.example.com/tools/other": identity.ErrAudience,
			} {
				_, err := e.authenticate(t.Context(), token(audience))
				both := `have it issued for "attache" or "https://mcp.example.com/tools` + e.Path + `"`
				if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), both) {
					t.Errorf("a token for %s at %s: %v", audience, e.Path, err)
				}
			}
		}
		attachetest.WriteFile(t, file, strings.Replace(text, "audience", "leeway: 10s, audience", 1))
		for _, e := range s.endpoints {
			e.reloader.Reload()
		}
	}
}

// Clients that parse the URL of a server ask the issuer for its normal form. Nothing else is accepted
// besides it.
func TestTokensForNormalURL(t *testing.T) {
	for _, c := range []struct {
		public, audience string
		want             error
	}{
		{"https://mcp.example.com", "https://mcp.example.com", nil},
		{"https://mcp.example.com", "https://mcp.example.com/", nil},
		{"https://MCP.example.com:443/Mcp", "https://mcp.example.com/Mcp", nil},
		{"http://mcp.example.com:80/mcp", "http://mcp.example.com/mcp", nil},
		{"https://mcp.example.com/mcp", "https://mcp.example.com/mcp/", identity.ErrAudience},
		{"https://mcp.example.com/Mcp", "https://mcp.example.com/mcp", identity.ErrAudience},
		{"https://mcp.example.com:80/mcp", "https://mcp.example.com/mcp", identity.ErrAudience},
		{"https://mcp.example.com/mcp", "http://mcp.example.com/mcp", identity.ErrAudience},
		{"https://mcp.example.com/mcp", "https://mcp.example.com:8443/mcp", identity.ErrAudience},
		{"https://mcp.example.com/mcp", "https://mcp.example.com/m%63p", identity.ErrAudience},
	} {
		r := start(t, `{identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: DIR/jwks.json}}, serve: {public_url: "`+c.public+`"}}`)
		attachetest.WriteFile(t, r.endpoints[0].Settings.Identity.JWT.JWKS, string(attachetest.KeySet()))
		_, err := r.endpoints[0].authenticate(t.Context(), attachetest.Token(map[string]any{"sub": "ada", "aud": []string{"other", c.audience}}))
		if !errors.Is(err, c.want) {
			t.Errorf("a token for %s at %s: %v", c.audience, c.public, err)
		}
	}
}

// Concurrent calls in one session, with different tokens of one user, are each judged by the
// permissions of their own token, with and without a session file.
func TestTokensOfOneSession(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{"jwks.json": attachetest.KeySet(), "session.yaml": []byte("plan: pro\n")} {
		attachetest.WriteFile(t, filepath.Join(dir, name), string(content))
	}
	for _, session := range []string{"", "session: {file: " + dir + "/session.yaml}\n"} {
		r := start(t, session+`
identity: {jwt: {issuer: "https://issuer.test", audience: attache, jwks: `+dir+`/jwks.json}}
access: {rules: [{tools: [whoami], require: [write]}]}
`)
		var calls sync.WaitGroup
		for permissions, allowed := range map[string]bool{"read": false, "read write": true} {
			token := attachetest.Token(map[string]any{"permissions": permissions})
			for i := range 100 {
				calls.Go(func() {
					_, reply := r.post(t, http.DefaultClient, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s %d","method":"tools/call","params":{"name":"whoami","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, permissions, i),
						"Authorization", "Bearer "+token, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "whoami")
					if got := !strings.Contains(reply, "Permission denied"); got != allowed {
						t.Errorf("%q: with the permissions %q: %s", session, permissions, reply)
					}
				})
			}
		}
		calls.Wait()
	}
}

// A reload applies to existing sessions.
func TestReload(t *testing.T) {
	r := start(t, "access: {rules: []}\n")
	session := r.open(t)
	call := func() string {
		_, body := r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`, "Mcp-Session-Id", session)
		return body
	}
	if got := call(); strings.Contains(got, "Permission denied") {
		t.Error(got)
	}
	attachetest.WriteFile(t, r.endpoints[0].Settings.File, "access: {rules: [{tools: [whoami], deny: true}]}\n")
	r.endpoints[0].reloader.Reload()
	if got := call(); !strings.Contains(got, "Permission denied") {
		t.Error(got)
	}
}

// A session whose server does not read neither keeps later configurations from other sessions nor
// attache from ending.
func TestReloadBesideDeafServer(t *testing.T) {
	t.Parallel()
	r := start(t, "access: {rules: []}\n")
	r.signals = session.Signals{Ending: make(chan os.Signal), Reload: make(chan os.Signal)}
	ended := make(chan int, 1)
	go func() { ended <- r.await(t.Context(), nil) }()
	good := r.open(t)
	echo := r.endpoints[0].start
	deaf := mempipe.NewServer(1 << 10)
	r.endpoints[0].start = func(front.Opening, func() []string) (proxy.Upstream, error) { return deaf, nil }
	go func() {
		_, _ = deaf.In.ReadLine(time.Minute)
		_, _ = deaf.Out.Write([]byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}` + "\n"))
		<-deaf.Stopping()
		deaf.Exit(nil)
	}()
	stuck := r.open(t)
	r.endpoints[0].start = echo
	r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","method":"x","params":{"p":"`+strings.Repeat("x", 8<<10)+`"}}`, "Mcp-Session-Id", stuck)
	deaf.In.AwaitStuck()
	for _, deny := range []bool{true, false, true} {
		config := "access: {rules: []}\n"
		if deny {
			config = "access: {rules: [{tools: [whoami], deny: true}]}\n"
		}
		check(t, os.WriteFile(r.endpoints[0].Settings.File, []byte(config), 0o600))
		select {
		case r.signals.Reload <- syscall.SIGHUP:
		case <-time.After(time.Minute):
			t.Fatal("no other signal is handled")
		}
		denied := !deny
		for end := time.Now().Add(time.Minute); denied != deny && time.Now().Before(end); {
			_, body := r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`, "Mcp-Session-Id", good)
			denied = strings.Contains(body, "Permission denied")
		}
		if denied != deny {
			t.Fatalf("the other session is denied: %t, want %t", denied, deny)
		}
	}
	select {
	case r.signals.Ending <- syscall.SIGTERM:
	case <-time.After(time.Minute):
		t.Fatal("attache does not end")
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d", code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.endpoints[0].front.Drain(ctx)
}

// A reload that waits, for example for an included file that cannot be fetched, does not keep attache from
// ending.
func TestEndDuringReload(t *testing.T) {
	r := start(t, "{}\n")
	r.signals = session.Signals{Ending: make(chan os.Signal), Reload: make(chan os.Signal)}
	e := r.endpoints[0]
	e.reloader.Close()
	loading, loaded := make(chan struct{}), make(chan struct{})
	defer close(loaded)
	e.reloader = session.NewReloader(e.shared, func() (*config.Settings, error) {
		close(loading)
		<-loaded
		return nil, errors.New("cannot be fetched")
	}, "", e.log)
	ended := make(chan int, 1)
	go func() { ended <- r.await(t.Context(), nil) }()
	r.signals.Reload <- syscall.SIGHUP
	<-loading
	select {
	case r.signals.Ending <- syscall.SIGTERM:
		<-ended
	case <-time.After(time.Minute):
		t.Error("attache does not end")
	}
}

// A second signal ends attache at once, also if a client holds a connection on which it sends nothing.
func TestSecondSignal(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		s := newTestService(t, cli.Process{Stderr: io.Discard})
		synctest.Test(t, func(t *testing.T) {
			l := pipeListener{conns: make(chan net.Conn)}
			server := s.httpServer()
			go s.serveOn(server, l)
			client, conn := net.Pipe()
			l.conns <- conn
			close(l.conns)
			synctest.Wait()
			s.signals.Ending = make(chan os.Signal, 1)
			time.AfterFunc(after, func() { s.signals.Ending <- syscall.SIGTERM })
			began := time.Now()
			s.drain(server, nil)
			if took := time.Since(began); took > after+time.Second {
				t.Errorf("attache ended %v after the first signal and %v after the second", took, took-after)
			}
			client.Close()
		})
	}
}

// A pipeListener accepts connections that the test provides.
type pipeListener struct {
	net.Listener
	conns chan net.Conn
}

func (l pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// The answer to a request for an unknown path has the id of the request, and differs from that for a
// session that has ended.
func TestUnservedPath(t *testing.T) {
	r := start(t, "{}\n")
	for body, id := range map[string]string{
		initialize: "0", `{"jsonrpc":"2.0","id":"a","method":"ping"}`: `"a"`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`: "null", "{": "null", "": "null",
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`: "null", `{"jsonrpc":"2.0","id":1,"result":{}}`: "null",
	} {
		resp, err := http.Post(strings.TrimSuffix(r.url, "/mcp")+"/elsewhere", "application/json", strings.NewReader(body))
		check(t, err)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		want := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no MCP server has this path: correct the path`
		if resp.StatusCode != http.StatusNotFound || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: %d %s, want %s", body, resp.StatusCode, b, want)
		}
		if resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", body, resp.Header)
		}
	}
}

// Clients that are slow to send headers, or the body of a request that needs none, are disconnected.
// The scripts of proxy/front have more such cases.
func TestF55SlowClients(t *testing.T) {
	s := newTestService(t, cli.Process{Stderr: io.Discard})
	for _, test := range []struct {
		sent  string
		limit time.Duration
		want  string
	}{
		{"POST /mcp HTTP/1.1\r\nHost: loc", headerTime, ""},
		{"POST /elsewhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx", writeTime, "HTTP/1.1 404"},
		{"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", connectionIdle, "HTTP/1.1 200"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := pipeListener{conns: make(chan net.Conn)}
			server := s.httpServer()
			go s.serveOn(server, l)
			client, conn := net.Pipe()
			l.conns <- conn
			go io.WriteString(client, test.sent)
			began := time.Now()
			got, _ := io.ReadAll(client)
			if took := time.Since(began); took < test.limit || took > test.limit+time.Second || !strings.HasPrefix(string(got), test.want) {
				t.Errorf("%q: after %v %q", test.sent, took, got)
			}
			close(l.conns)
			server.Close()
		})
	}
}

// The size of headers is limited.
func TestF55LargeHeaders(t *testing.T) {
	r := start(t, "{}\n")
	address := strings.TrimSuffix(strings.TrimPrefix(r.url, "http://"), "/mcp")
	c, err := net.Dial("tcp", address)
	check(t, err)
	defer c.Close()
	_, _ = fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 2*maxHeader))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%v %v", resp, err)
	}
	if s := r.httpServer(); s.WriteTimeout != 0 {
		t.Error("streams have a time limit")
	}
}

// Many requests on persistent connections each get a complete answer.
func TestF53ManyPosts(t *testing.T) {
	t.Parallel()
	r := start(t, "{}\n")
	session := r.open(t)
	var clients sync.WaitGroup
	for n := range 10 {
		clients.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for i := range 1000 {
				accept := []string{"text/event-stream", "application/json"}[i%2]
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","method":"tools/list","params":{"pad":"%s"}}`, n, i, strings.Repeat("x", i*10))
				_, got := r.post(t, c, body, "Mcp-Session-Id", session, "Accept", accept)
				if !strings.Contains(got, fmt.Sprintf(`"id":"%d-%d",`, n, i)) || !strings.HasSuffix(strings.TrimSpace(got), "}") {
					t.Errorf("reply %d of client %d: %s", i, n, got)
					return
				}
			}
		})
	}
	clients.Wait()
}

// The certificate is read again when its file changes, and HTTP/2 is supported.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	attachetest.WriteCertificate(t, dir, 1)
	r := start(t, "serve: {tls: {cert: "+cert+", key: "+key+"}}\n")
	serial := func() (n int64, protocol string) {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
		resp, _ := r.post(t, c, initialize)
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), resp.Proto
	}
	if n, protocol := serial(); n != 1 || protocol != "HTTP/2.0" {
		t.Error(n, protocol)
	}
	var log bytes.Buffer
	c := newCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if _, err := c.get(nil); err != nil {
		t.Fatal(err)
	}
	attachetest.WriteCertificate(t, dir, 2)
	later := time.Now().Add(time.Hour)
	check(t, os.Chtimes(cert, later, later))
	c.checked = time.Time{}
	next, err := c.get(nil)
	check(t, err)
	leaf, err := x509.ParseCertificate(next.Certificate[0])
	if err != nil || leaf.SerialNumber.Int64() != 2 {
		t.Error(leaf.SerialNumber, err)
	}
	attachetest.WriteFile(t, cert, "")
	for range 2 {
		c.checked = time.Time{}
		if kept, err := c.get(nil); err != nil || kept != next {
			t.Error("after an invalid certificate file, the old certificate is not used:", err)
		}
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || strings.Count(got, "the certificate was read") != 2 || !strings.Contains(got, "expires=20") {
		t.Errorf("the log has %q, want that a certificate was read, twice, and one warning", got)
	}
}

// A certificate that has expired is used, because the clock may be wrong, and logged as a warning.
func TestTLSExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		attachetest.WriteCertificate(t, dir, 1)
		time.Sleep(2 * time.Hour) // of the clock of the bubble
		var log bytes.Buffer
		c := newCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), slog.New(slog.NewTextHandler(&log, nil)))
		if _, err := c.get(nil); err != nil {
			t.Error(err)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "has expired") {
			t.Errorf("the log has %q, want one warning", got)
		}
	})
}

// A certificate that is missing at the start is logged as an error, and used as soon as it exists.
func TestTLSLater(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	var log bytes.Buffer
	c := newCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, cert) {
		t.Errorf("the log has %q", got)
	}
	if _, err := c.get(nil); err == nil {
		t.Error("there is a certificate")
	}
	attachetest.WriteCertificate(t, dir, 1)
	if got, err := c.get(nil); err != nil || got == nil {
		t.Error(got, err)
	}
}

// TestAdmin requests metrics, health and profiles.
func TestAdmin(t *testing.T) {
	r := start(t, "{}\n")
	resp, _ := r.post(t, http.DefaultClient, initialize)
	if resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode)
	}
	for path, want := range map[string]string{
		"/metrics":                       "attache_sessions 1\n",
		"/debug/pprof/":                  "profile?seconds=30\ntrace?seconds=30\nallocs\nblock\ngoroutine\n",
		"/debug/pprof/goroutine":         "",
		"/debug/pprof/no-such":           "{}",
		"/healthz":                       "ok\n",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
	} {
		w := httptest.NewRecorder()
		q, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1"+path, nil)
		r.adminHandler().ServeHTTP(w, q)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", path, w.Body)
		}
		for _, want := range []string{"\nattache_requests_in_flight ", "\nattache_upstreams 1\n", "# TYPE attache_http_requests_total counter\n"} {
			if path == "/metrics" && !(strings.Contains(w.Body.String(), want) && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4")) {
				t.Errorf("%q is missing in\n%s", want, w.Body)
			}
		}
		w = httptest.NewRecorder()
		q.Host = "evil.example" // a page whose host name resolves to the loopback address
		r.adminHandler().ServeHTTP(w, q)
		if !strings.Contains(w.Body.String(), "serve.admin is for this machine") {
			t.Errorf("%s for another host: %s", path, w.Body)
		}
	}
}

// If another program listens at serve.admin, for example a front with the same configuration, the log says what to
// do.
func TestAdminAddressInUse(t *testing.T) {
	var out bytes.Buffer
	r := startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), "{}\n")
	u, err := url.Parse(r.url)
	check(t, err)
	r.settings.Admin = u.Host
	if code := r.run(t.Context(), nil); code != cli.ExitFailure || !strings.Contains(out.String(), "end what listens there, or choose another serve.admin") {
		t.Errorf("status %d, the log has %q", code, out.String())
	}
}

// Each profile and trace can be requested, also after a client that disconnected, and only one at a time.
func TestProfiles(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	get := func(name string) *httptest.ResponseRecorder {
		q := httptest.NewRequestWithContext(left, http.MethodGet, "/debug/pprof/"+name, nil)
		q.SetPathValue("profile", name)
		w := httptest.NewRecorder()
		profile(w, q)
		return w
	}
	for name, begin := range map[string]string{"profile": "\x1f\x8b", "trace": "go 1."} {
		for range 2 {
			if w := get(name); w.Code != 200 || !strings.HasPrefix(w.Body.String(), begin) {
				t.Errorf("%s: %d %.20q", name, w.Code, w.Body)
			}
		}
	}
	check(t, pprof.StartCPUProfile(io.Discard))
	defer pprof.StopCPUProfile()
	if w := get("profile"); w.Code != 409 {
		t.Errorf("during another profile: %d", w.Code)
	}
}

// Requests are counted by the path of their server.
func TestRequestMetrics(t *testing.T) {
	s := &service{Options: Options{Log: slog.New(slog.DiscardHandler)}, counts: map[string]*counts{"/git": {}, "/sentry": {}, otherPaths: {}}}
	s.note(http.MethodPost, "/git", "", time.Now(), 200, 0)
	s.note(http.MethodGet, "/sentry", "", time.Now(), 405, 0)
	s.note("BREW", "/coffee", "", time.Now(), 404, 0)
	var b strings.Builder
	s.writeCounts(&b)
	for _, want := range []string{
		"# TYPE attache_http_requests_total counter\n" +
			`attache_http_requests_total{path="/git",method="POST",status="200"} 1` + "\n" +
			`attache_http_requests_total{path="/sentry",method="GET",status="405"} 1` + "\n" +
			`attache_http_requests_total{path="other",method="other",status="404"} 1` + "\n#",
		`attache_http_post_duration_seconds_bucket{path="/git",le="60"} 1` + "\n" + `attache_http_post_duration_seconds_bucket{path="/git",le="+Inf"} 1` + "\n",
		`attache_http_post_duration_seconds_count{path="/git"} 1` + "\n",
		`attache_http_post_duration_seconds_count{path="/sentry"} 0` + "\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
}

// Two handlers cannot have the same path, and a server may have any other path.
func TestPaths(t *testing.T) {
	for _, path := range []string{"/", "/a b", "/100%", "/git#1", "/a%2Fb", "/mcp/git"} {
		s := start(t, "serve: {}\n", path)
		if resp, body := s.post(t, http.DefaultClient, initialize); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
		resp, err := http.Get(strings.TrimSuffix(s.url, (&url.URL{Path: path}).EscapedPath()) + "/healthz")
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: health: %v %v", path, resp, err)
		}
	}
	p := cli.Process{Stderr: io.Discard}
	if _, err := tryTestService(p, "/healthz"); err == nil || !strings.Contains(err.Error(), "the path /healthz is taken") {
		t.Error(err)
	}
}

// The name of a server can have characters that a URL does not.
func TestResources(t *testing.T) {
	s := &service{Options: Options{Servers: make([]Server, 2)}, settings: &config.ServeSettings{PublicURL: "https://mcp.example.com/tools"}}
	for path, want := range map[string]string{"/git": "/git", "/a b": "/a%20b", "/100%": "/100%25", "/git#1": "/git%231", "/a%2Fb": "/a%252Fb"} {
		e := &endpoint{Server: Server{Path: path}}
		if got := s.resource(e); got != "https://mcp.example.com/tools"+want {
			t.Errorf("%s: the resource is %s", path, got)
		}
		if got := s.metadataURL(e); got.String() != "https://mcp.example.com/.well-known/oauth-protected-resource/tools"+want || got.Path != metadataPath+"/tools"+path {
			t.Errorf("%s: the metadata is at %s, with the path %s", path, got, got.Path)
		}
	}
}

// If a profile cannot be written, no error is sent, which net/http would log as a superfluous header.
func TestProfileToClosedConnection(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/goroutine", nil)
	check(t, err)
	r.SetPathValue("profile", "goroutine")
	var w brokenWriter
	profile(&w, r)
	if w.writes == 0 || w.statuses != 0 {
		t.Errorf("%d writes and %d headers, want at least one write and no header", w.writes, w.statuses)
	}
}

// A brokenWriter is the response to a client that has disconnected.
type brokenWriter struct {
	header           http.Header
	writes, statuses int
}

func (w *brokenWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *brokenWriter) WriteHeader(int) { w.statuses++ }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, io.ErrClosedPipe
}

var check = testkit.Check

// Without serve.admin nothing listens for it. The empty address would be that of all interfaces.
func TestNoAdmin(t *testing.T) {
	server, err := start(t, "{}\n").startAdmin(t.Context(), nil)
	if server != nil || err != nil {
		t.Errorf("got %v, %v", server, err)
	}
}
