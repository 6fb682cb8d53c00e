package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/attache-mcp/attache/cmd/attache/internal/login"
	"github.com/attache-mcp/attache/cmd/attache/internal/login/logintest"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A ring is a key ring in memory.
type ring struct {
	mu   sync.Mutex
	text string
	err  error
}

func (r *ring) Get() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return "", r.err
	case r.text == "":
		return "", login.ErrNoKey
	}
	return r.text, nil
}

func (r *ring) Set(text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = text
	return r.err
}

// start starts a server. It returns the server and the options of a login to it.
func start(t *testing.T, c logintest.Config) (*logintest.Server, login.Options) {
	t.Helper()
	if c.Protected == nil {
		c.Protected = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	}
	s := logintest.New(c)
	t.Cleanup(s.Close)
	return s, options(t, s)
}

func options(t *testing.T, s *logintest.Server) login.Options {
	t.Helper()
	transport := remote.NewTransport(remote.TransportOptions{})
	t.Cleanup(transport.CloseIdleConnections)
	return login.Options{URL: s.MCP(), Name: s.MCP(), Transport: transport.Transport, Store: login.Store{Dir: filepath.Join(t.TempDir(), "logins")}}
}

// logIn logs in, which must succeed.
func logIn(t *testing.T, o login.Options) *login.Grant {
	t.Helper()
	g, err := login.Login(t.Context(), o, browser(t))
	check(t, err)
	return g
}

// browser returns the UI of a person who approves everything.
func browser(t *testing.T) login.UI {
	return login.UI{
		Show: func(address string) {
			go func() {
				resp, err := http.Get(address)
				if err != nil {
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("the browser shows: %s", text)
				}
			}()
		},
		Say: func(text string) { t.Log(text) },
	}
}

// approve approves a login, and returns the address to which the authorization server sends the browser.
func approve(t *testing.T, address string) string {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(address)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp.Body.Close()
	return resp.Header.Get("Location")
}

// call sends one request to the server with the credentials, and returns the status.
func call(t *testing.T, s *logintest.Server, c *login.Credentials, query string) (int, error) {
	t.Helper()
	for tries := 0; ; tries++ {
		r, err := http.NewRequest(http.MethodPost, s.MCP()+query, nil)
		check(t, err)
		if err := c.Set(t.Context(), r.Header); err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(r)
		check(t, err)
		var said struct{ Error struct{ Message string } }
		_ = json.NewDecoder(resp.Body).Decode(&said)
		resp.Body.Close()
		if resp.StatusCode != 401 && resp.StatusCode != 403 || tries > 0 {
			return resp.StatusCode, nil
		}
		again, err := c.Refused(t.Context(), remote.Refusal{Status: resp.StatusCode, Sent: r.Header, Challenge: resp.Header.Values("WWW-Authenticate"), Said: said.Error.Message})
		if err != nil || !again {
			return resp.StatusCode, err
		}
	}
}

// requireServed makes a call, which must succeed.
func requireServed(t *testing.T, s *logintest.Server, c *login.Credentials, query string) {
	t.Helper()
	if status, err := call(t, s, c, query); status != 200 || err != nil {
		t.Errorf("%q: status %d, error %v", query, status, err)
	}
}

// requireError checks that an error has each of the texts.
func requireError(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one with %q", err, text)
		}
	}
}

func credentials(o login.Options) *login.Credentials {
	return login.NewCredentials(o, slog.New(slog.DiscardHandler))
}

func TestU22Login(t *testing.T) {
	secret := func() (string, error) { return "s3cret", nil }
	for _, test := range []struct {
		name    string
		server  logintest.Config
		options func(*login.Options)
		wrong   string // part of the error; "" if the login succeeds
		events  string // an event that happens once
	}{
		{name: "metadata named by the header", events: "register"},
		{name: "metadata at the path of the server", server: logintest.Config{NoHeader: true}},
		{name: "metadata at the root", server: logintest.Config{NoHeader: true, PRM: "root"}},
		{name: "metadata at the root named by the header", server: logintest.Config{PRM: "root"}},
		{name: "metadata that only the header names", server: logintest.Config{PRM: "named", IssuerPath: "/tenant", Iss: "right"}},
		{name: "revision 2025-03-26", server: logintest.Config{PRM: "none"}},
		{name: "revision 2025-03-26 without metadata", server: logintest.Config{PRM: "none", Layout: "none"}},
		{name: "issuer with a path", server: logintest.Config{IssuerPath: "/tenant"}},
		{name: "issuer with a slash at its end", server: logintest.Config{IssuerPath: "/", Iss: "right"}},
		{name: "issuer with a path and a slash at its end", server: logintest.Config{IssuerPath: "/tenant/"}},
		{name: "openid, path inserted", server: logintest.Config{IssuerPath: "/tenant", Layout: "insert"}},
		{name: "openid, path appended", server: logintest.Config{IssuerPath: "/tenant", Layout: "append"}},
		{name: "openid without a path", server: logintest.Config{Layout: "insert"}},
		{name: "openid on a server of pages", server: logintest.Config{IssuerPath: "/tenant", Layout: "append", Pages: true}},
		{name: "revision 2025-03-26 on a server of pages", server: logintest.Config{PRM: "none", Layout: "none", Pages: true}},
		{name: "no metadata of the issuer", server: logintest.Config{Layout: "none"}, wrong: "has no metadata"},
		{name: "U25 metadata of another server", server: logintest.Config{PRM: "https://other.example/mcp"}, wrong: "is about another server, https://other.example/mcp"},
		{name: "no PKCE", server: logintest.Config{PKCE: []string{}}, wrong: "PKCE"},
		{name: "PKCE without S256", server: logintest.Config{PKCE: []string{"plain"}}, wrong: "PKCE with S256"},
		{name: "U24 issuer in the answer", server: logintest.Config{Iss: "right", AdvertisesIss: true}},
		{name: "U24 issuer in the answer, not advertised", server: logintest.Config{Iss: "right"}},
		{name: "U24 other issuer in the answer", server: logintest.Config{Iss: "https://evil.example", AdvertisesIss: true}, wrong: "another authorization server, https://evil.example"},
		{name: "U24 other issuer in the answer, not advertised", server: logintest.Config{Iss: "https://evil.example"}, wrong: "another authorization server"},
		{name: "U24 issuer missing in the answer", server: logintest.Config{AdvertisesIss: true}, wrong: "does not name its authorization server"},
		{name: "secret in the form", server: logintest.Config{Methods: []string{"client_secret_post"}}},
		{name: "secret in the header", server: logintest.Config{Methods: []string{"client_secret_basic"}}},
		{
			name: "client registered by hand", server: logintest.Config{NoRegister: true, Clients: map[string]string{"ours": "s3cret"}},
			options: func(o *login.Options) { o.ClientID, o.ClientSecret = "ours", secret },
		},
		{
			name: "public client registered by hand", server: logintest.Config{Clients: map[string]string{"ours": ""}},
			options: func(o *login.Options) { o.ClientID = "ours" },
		},
		{
			name: "wrong secret", server: logintest.Config{NoRegister: true, Clients: map[string]string{"ours": "other"}},
			options: func(o *login.Options) { o.ClientID, o.ClientSecret = "ours", secret }, wrong: "invalid_client",
		},
		{
			name: "client id metadata document", server: logintest.Config{NoRegister: true, Document: true},
			options: func(o *login.Options) { o.ClientMetadata = "https://attache.example/client.json" },
		},
		{
			name: "client id metadata document, not supported", events: "register",
			options: func(o *login.Options) { o.ClientMetadata = "https://attache.example/client.json" },
		},
		{name: "no registration", server: logintest.Config{NoRegister: true}, wrong: "set server.oauth.client_id"},
		{name: "no document", server: logintest.Config{NoRegister: true, Document: true}, wrong: "set server.oauth.client_metadata to its address"},
		{
			name: "secret for another issuer than the user has named", server: logintest.Config{Clients: map[string]string{"ours": "s3cret"}, IssuerHost: "localhost"},
			options: func(o *login.Options) { o.ClientID, o.ClientSecret = "ours", secret }, wrong: "the client's secret is not sent to http://localhost:",
		},
		{name: "issuer of another origin, no secret", server: logintest.Config{IssuerHost: "localhost"}},
		{name: "issuer of the settings", options: func(o *login.Options) { o.Issuer = origin(o.URL) + "/" }},
		{
			name: "issuer that the server does not use", wrong: "server.oauth.issuer names another one, which the server does not use",
			options: func(o *login.Options) { o.Issuer = "https://other.example" },
		},
		{
			name: "issuer of the settings, and others", options: func(o *login.Options) { o.Issuer = origin(o.URL) },
			server: logintest.Config{Edit: replaced("/.well-known/oauth-protected-resource/mcp", `servers":[`, `servers":["https://other.example",`)},
		},
		{name: "metadata of another issuer", server: elsewhere(`/tenant"`, `"`), wrong: "set server.oauth.issuer to it"},
		{
			name: "metadata of the issuer of the settings at another address", server: elsewhere(`/tenant"`, `"`),
			options: func(o *login.Options) { o.Issuer = origin(o.URL) },
		},
		{
			name: "metadata of the issuer of the settings with other endpoints", server: elsewhere(`"issuer":"http://127.0.0.1`, `"issuer":"http://localhost`),
			options: func(o *login.Options) {
				o.Issuer = strings.Replace(origin(o.URL), "127.0.0.1", "localhost", 1) + "/tenant"
			}, wrong: "an endpoint of another host",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, o := start(t, test.server)
			if test.options != nil {
				test.options(&o)
			}
			_, err := login.Login(t.Context(), o, browser(t))
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Fatalf("error %v, want one with %q", err, test.wrong)
				}
				if s.Count("code") > 0 {
					t.Error("the code was used")
				}
				return
			}
			check(t, err)
			requireServed(t, s, credentials(o), "")
			if test.events != "" && s.Count(test.events) != 1 {
				t.Errorf("%s: %d times", test.events, s.Count(test.events))
			}
		})
	}
}

// elsewhere returns a server whose authorization server has the path /tenant. In its metadata it replaces
// old with text.
func elsewhere(old, text string) logintest.Config {
	return logintest.Config{IssuerPath: "/tenant", Edit: replaced("/.well-known/oauth-authorization-server/tenant", old, text)}
}

func origin(address string) string {
	u, _ := url.Parse(address)
	return u.Scheme + "://" + u.Host
}

// Login returns an error for a server that requires no login. The error names a status that is not the one of an MCP server.
func TestLoginNotRequired(t *testing.T) {
	for status, want := range map[int]string{
		200: "", 400: "", // to a ping without a session
		300: " (it answered HTTP 300 Multiple Choices: check the address)",
		404: " (it answered HTTP 404 Not Found: check the address)",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[bool]int{true: status, false: 404}[r.URL.Path == "/mcp"])
		}))
		_, err := login.Login(t.Context(), options(t, &logintest.Server{Server: server}), browser(t))
		if err == nil || err.Error() != "the server asks for no login, and names no authorization server"+want {
			t.Errorf("status %d: error %v", status, err)
		}
		server.Close()
	}
}

// The request that asks for the login has the headers of the configuration. It follows a redirect within
// the server, and takes the headers to no other one.
func TestLoginHeaders(t *testing.T) {
	var key, target string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/moved" {
			key = r.Header.Get("X-Key")
		}
		w.WriteHeader(http.StatusNotFound)
	})
	s, other := httptest.NewServer(handler), httptest.NewServer(handler)
	defer s.Close()
	defer other.Close()
	for _, test := range []struct{ target, key, status string }{{s.URL, "k", "404"}, {other.URL, "", "307"}} {
		key, target = "", test.target+"/moved"
		o := options(t, &logintest.Server{Server: s})
		o.Header = http.Header{"X-Key": {"k"}}
		_, err := login.Login(t.Context(), o, browser(t))
		requireError(t, err, "it answered HTTP "+test.status)
		if key != test.key {
			t.Errorf("redirected to %s: key %q", target, key)
		}
	}
}

// The error for a server that cannot be reached does not show the query of its address.
func TestUnreachable(t *testing.T) {
	s, o := start(t, logintest.Config{})
	s.Close()
	o.URL += "?key=secret"
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "the server cannot be reached: ")
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// Without a login a call fails with an error that says what to do, and nobody is asked to log in.
func TestNoLogin(t *testing.T) {
	s, o := start(t, logintest.Config{})
	var log strings.Builder
	c := login.NewCredentials(o, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		_, err := call(t, s, c, "")
		requireError(t, err, `run "attache login `+s.MCP()+`"`)
	}
	if n := strings.Count(log.String(), "the remote server wants a login"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	if _, err := os.Stat(o.Store.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the store was made for nothing")
	}
}

// For a server that requires a credential and has no login, such as a front with API keys, calls and
// Login report what to do and the server's message.
func TestServerWithoutLogin(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/mcp" {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no MCP server has this path"}}`)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"send an API key"}}`)
	}))
	defer server.Close()
	s := &logintest.Server{Server: server}
	o := options(t, s)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "(it says: send an API key). If you", "--bearer-env", `if the server has a login: run "attache login `)
	_, err = login.Login(t.Context(), o, browser(t))
	requireError(t, err, "the server has no login", "--bearer-env", "(it says: send an API key). If you")
}

// A login while attache is running is used by the next call.
func TestLoginMeanwhile(t *testing.T) {
	s, o := start(t, logintest.Config{})
	c := credentials(o)
	if _, err := call(t, s, c, ""); err == nil {
		t.Fatal("served without a login")
	}
	logIn(t, o)
	requireServed(t, s, c, "")
}

// A token that has expired is renewed before a request, and one that was revoked after the server
// refuses it, both only once for all calls and all processes.
func TestU26Renew(t *testing.T) {
	for name, config := range map[string]logintest.Config{
		"over":                  {Lifetime: dueLifetime}, // renewed immediately
		"back":                  {},
		"back without metadata": {NoHeader: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := start(t, config)
			logIn(t, o)
			s.SetLifetime(time.Hour)
			if name != "over" {
				s.Revoke(true)
			}
			var wg sync.WaitGroup
			for range 4 {
				c := credentials(o) // as in another process
				for range 5 {
					wg.Go(func() {
						requireServed(t, s, c, "")
					})
				}
			}
			wg.Wait()
			if s.Count("refresh") != 1 || s.Count("replay") != 0 || s.Count("served") != 20 {
				t.Errorf("%d refreshes, %d replays, %d served", s.Count("refresh"), s.Count("replay"), s.Count("served"))
			}
		})
	}
}

// An OpenID provider ignores offline_access unless the request asks for a consent prompt.
func TestOfflineAccess(t *testing.T) {
	_, o := start(t, logintest.Config{Offline: true, Scopes: []string{"read"}})
	g := logIn(t, o)
	if !g.CanRenew {
		t.Errorf("the login with the scopes %q cannot be renewed", g.Scopes)
	}
}

// An authorization server may support offline_access, and not allow it to the client of attache, as Authelia and Ory's
// do with clients that were registered by hand. Then the login cannot be renewed.
func TestOfflineAccessNotAllowed(t *testing.T) {
	s, o := start(t, logintest.Config{Offline: true, NoScope: "offline_access", Scopes: []string{"read"}})
	g := logIn(t, o)
	if g.CanRenew || strings.Join(g.Scopes, " ") != "read" || s.Count("authorize") != 2 {
		t.Errorf("after %d requests: %+v", s.Count("authorize"), g)
	}
	requireServed(t, s, credentials(o), "")
	o.Scopes = []string{"offline_access"} // asked for by the configuration
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "invalid_scope")
	if n := s.Count("authorize"); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// A login that has ended is used only once more, and the error says what to do.
func TestEnded(t *testing.T) {
	s, o := start(t, logintest.Config{})
	logIn(t, o)
	before := credentials(o)
	requireServed(t, s, before, "")
	s.Revoke(false)
	for range 3 {
		_, err := call(t, s, credentials(o), "")
		requireError(t, err, "the login has ended: ", "invalid_grant", "attache login")
	}
	if all := o.Store.All(); len(all) != 1 || all[0].Usable(time.Now()) {
		t.Errorf("the store has %v", all)
	}
	// A process that has used the login before does not try its refresh token either.
	requests := 0
	o.Transport.Proxy = func(*http.Request) (*url.URL, error) { requests++; return nil, nil } // before each request
	_, err := call(t, s, before, "")
	requireError(t, err, "the login has ended: ", "invalid_grant")
	if requests > 0 {
		t.Errorf("%d requests to the authorization server", requests)
	}
	logIn(t, o)
	requireServed(t, s, credentials(o), "")
}

// A renewed grant that cannot be saved is used by the process that renewed it, which renews it again
// and saves it as soon as possible. The old refresh token is not used again.
func TestRenewalNotSaved(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: dueLifetime}) // renewed each time
	logIn(t, o)
	away := o.Store.Dir + ".away"
	hidden := false
	o.Transport.Proxy = func(r *http.Request) (*url.URL, error) { // before each request
		if hidden && strings.Contains(r.URL.Path, "token") {
			return nil, errors.Join(os.Rename(o.Store.Dir, away), os.WriteFile(o.Store.Dir, nil, 0o600))
		}
		return nil, nil
	}
	var log strings.Builder
	c := login.NewCredentials(o, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		hidden = true
		requireServed(t, s, c, "")
		os.RemoveAll(o.Store.Dir)
		if err := os.Rename(away, o.Store.Dir); err != nil {
			t.Fatal("the login was not renewed:", err)
		}
	}
	if n := strings.Count(log.String(), "cannot be saved"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	hidden = false
	for _, c := range []*login.Credentials{c, credentials(o)} {
		requireServed(t, s, c, "")
	}
	if s.Count("replay") != 0 {
		t.Errorf("%d times an old refresh token was used", s.Count("replay"))
	}
}

// dueLifetime is a lifetime within the leeway of 10 s: the next call renews the token. Until then it is valid,
// on a slow machine too.
const dueLifetime = 9 * time.Second

// An endingContext is that of a request at the end of a session: it always ends in less than a second.
type endingContext struct{ context.Context }

// Deadline implements context.Context.
func (endingContext) Deadline() (time.Time, bool) {
	return time.Now().Add(900 * time.Millisecond), true
}

// At the end of a session no token is renewed.
func TestNoRenewalAtTheEnd(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: dueLifetime})
	g := logIn(t, o)
	c := credentials(o)
	ctx := endingContext{t.Context()}
	h := http.Header{}
	if err := c.Set(ctx, h); err != nil || h.Get("Authorization") != "Bearer "+g.Access {
		t.Errorf("%v (%v)", h, err)
	}
	if again, err := c.Refused(ctx, remote.Refusal{Status: 401, Sent: h}); again || err != nil || s.Count("refresh") != 0 {
		t.Errorf("again: %v (%v), %d refreshes", again, err, s.Count("refresh"))
	}
	if status, err := call(t, s, c, ""); status != 200 || err != nil || s.Count("refresh") != 1 {
		t.Errorf("a later call: status %d, error %v, %d refreshes", status, err, s.Count("refresh"))
	}
}

// Calls that wait for a renewal that fails do not each try it again: the authorization server may not
// answer at all.
func TestRenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		o := login.Options{URL: "http://127.0.0.1/mcp", Store: login.Store{Dir: filepath.Join(t.TempDir(), "logins")}}
		o.Transport = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { // before each request
			tries++
			time.Sleep(time.Second)
			return nil, errors.New("no answer")
		}}
		unlock, err := o.Store.Lock(t.Context(), o.URL)
		check(t, err)
		g := &login.Grant{URL: o.URL, Token: o.URL + "/token", Style: oauth2.AuthStyleInParams, Expires: time.Now(), Secrets: login.Secrets{Access: "a", Refresh: "r"}}
		check(t, o.Store.Save(g))
		unlock()
		c := credentials(o)
		for want := range 2 {
			var calls sync.WaitGroup
			for range 5 {
				calls.Go(func() {
					requireError(t, c.Set(t.Context(), http.Header{}), "no answer")
				})
			}
			if calls.Wait(); tries != want+1 {
				t.Errorf("%d tries, want %d", tries, want+1)
			}
		}
	})
}

// The same is true for the first token of a machine.
func TestMachineLoginHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		o := login.Options{URL: "http://127.0.0.1/mcp", Machine: true, ClientID: "machine", ClientSecret: func() (string, error) { return "s", nil }}
		o.Transport = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { // before each request
			tries++
			time.Sleep(time.Second)
			return nil, errors.New("no answer")
		}}
		c := credentials(o)
		refused := func() {
			_, err := c.Refused(t.Context(), remote.Refusal{Status: 401, Sent: http.Header{}})
			requireError(t, err, "no answer")
		}
		refused()
		one := tries
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(refused)
		}
		if calls.Wait(); tries != 2*one {
			t.Errorf("%d tries for 5 calls, want %d", tries-one, one)
		}
	})
}

// While the authorization server does not answer, a token that is valid is used.
func TestRenewalFails(t *testing.T) {
	for _, machine := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { // on a clock that stands still while requests are under way
			s, o := start(t, logintest.Config{Lifetime: dueLifetime, Clients: map[string]string{"machine": "s3cret"}})
			if o.Machine = machine; machine {
				o.ClientID, o.ClientSecret = "machine", func() (string, error) { return "s3cret", nil }
			} else {
				// The answer is pasted. A login waits on a timer until the browser has its page, and this clock does not
				// move while a connection is open.
				lines := make(chan string, 1)
				_, err := login.Login(t.Context(), o, login.UI{Lines: lines, Show: func(address string) { lines <- approve(t, address) }})
				check(t, err)
			}
			c := credentials(o)
			requireServed(t, s, c, "")
			o.Transport.Proxy = func(*http.Request) (*url.URL, error) { return nil, errors.New("no answer") } // before each request
			for range 2 {
				requireServed(t, s, c, "")
			}
		})
	}
}

// A call that lacks a scope fails with an error, and the next login requests all scopes.
func TestU23StepUp(t *testing.T) {
	s, o := start(t, logintest.Config{Scopes: []string{"read"}, Offline: true, Needs: func(r *http.Request) string { return r.URL.Query().Get("scope") }})
	c := credentials(o)
	logIn(t, o)
	requireServed(t, s, c, "?scope=read")
	for _, scope := range []string{"write", "admin"} {
		_, err := call(t, s, c, "?scope="+scope)
		requireError(t, err, "more rights for this ("+scope+")")
	}
	g := logIn(t, o)
	if want := "read offline_access write admin"; strings.Join(g.Scopes, " ") != want {
		t.Errorf("scopes %v, want %s", g.Scopes, want)
	}
	for _, scope := range []string{"read", "write", "admin"} {
		requireServed(t, s, c, "?scope="+scope)
	}
	if s.Count("replay") != 0 {
		t.Error("a refresh token was used twice")
	}
	// A server that requires a scope that the token has does not cause another login.
	s.SetRefuses(true)
	if _, err := call(t, s, c, "?scope=admin"); err == nil || strings.Contains(err.Error(), "attache login") || !strings.Contains(err.Error(), "scopes that the token has already (admin)") {
		t.Errorf("error %v", err)
	}
}

// A server may want a scope that its authorization server does not have. A logout forgets it.
func TestUnknownScope(t *testing.T) {
	s, o := start(t, logintest.Config{NoScope: "other", Needs: func(r *http.Request) string { return r.URL.Query().Get("scope") }})
	logIn(t, o)
	if _, err := call(t, s, credentials(o), "?scope=other"); err == nil {
		t.Fatal("no error")
	}
	_, err := login.Login(t.Context(), o, browser(t))
	if err == nil || !strings.Contains(err.Error(), "invalid_scope") || !strings.HasSuffix(err.Error(), `run "attache logout `+o.Name+`" to forget them`) {
		t.Errorf("error %v", err)
	}
	if _, err := login.Logout(t.Context(), o); err != nil {
		t.Error(err)
	}
	logIn(t, o)
}

// A machine needs no login, and requests more scopes by itself, but not repeatedly.
func TestMachine(t *testing.T) {
	s, o := start(t, logintest.Config{
		Scopes: []string{"read"}, Clients: map[string]string{"machine": "s3cret"}, Lifetime: time.Hour,
		Needs: func(r *http.Request) string { return r.URL.Query().Get("scope") },
	})
	o.Machine, o.ClientID, o.ClientSecret = true, "machine", func() (string, error) { return "s3cret", nil }
	c := credentials(o)
	for _, scope := range []string{"", "read", "write", "read", "admin", "write"} {
		requireServed(t, s, c, "?scope="+scope)
	}
	if n := s.Count("client_credentials"); n != 3 {
		t.Errorf("%d tokens", n)
	}
	s.Revoke(true)
	requireServed(t, s, c, "?scope=admin")
	if _, err := os.Stat(o.Store.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the store was made for nothing")
	}
	o.ClientSecret = func() (string, error) { return "other", nil }
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "invalid_client")
}

// Logins at the same time do not affect each other: each has its own port, state and verifier.
func TestConcurrentLogins(t *testing.T) {
	s, o := start(t, logintest.Config{})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := login.Login(t.Context(), o, browser(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	requireServed(t, s, credentials(o), "")
}

// Login reports immediately that a fixed port is in use.
func TestPortInUse(t *testing.T) {
	s, o := start(t, logintest.Config{})
	o.Redirect = s.URL + "/callback"
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "server.oauth.redirect")
	if s.Count("register") != 0 {
		t.Error("registered for nothing")
	}
}

// Authorization servers often have redirect addresses of native programs without a path, such as http://localhost:8765.
func TestRedirectWithoutPath(t *testing.T) {
	_, o := start(t, logintest.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	l.Close()
	o.Redirect = "http://" + l.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := login.Login(ctx, o, browser(t)); err != nil {
		t.Error(err)
	}
}

// Other requests to the port do not end a login, and the address may be pasted.
func TestRedirect(t *testing.T) {
	_, o := start(t, logintest.Config{})
	lines := make(chan string)
	var said []string
	ui := login.UI{Lines: lines, Say: func(text string) { said = append(said, text) }}
	ui.Show = func(address string) {
		go func() {
			defer close(lines)
			u, err := url.Parse(address)
			if err != nil {
				t.Error(err)
				return
			}
			target := u.Query().Get("redirect_uri")
			for _, query := range []string{"", "?code=x", "?code=x&state=other", "?error=access_denied&state=other"} {
				resp, err := http.Get(target + query)
				if err != nil || resp.StatusCode != http.StatusBadRequest {
					t.Errorf("%q: %v, %v", query, resp, err)
					continue
				}
				resp.Body.Close()
			}
			lines <- "what?"
			lines <- " " + approve(t, address) + " "
		}()
	}
	if _, err := login.Login(t.Context(), o, ui); err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 {
		t.Errorf("said %q", said)
	}
}

// A code is sent a second time only if the server refuses how the secret was sent: otherwise it may be used up.
func TestCodeIsSentOnce(t *testing.T) {
	_, o := start(t, logintest.Config{Clients: map[string]string{"ours": "s3cret"}})
	o.ClientID, o.ClientSecret = "ours", func() (string, error) { return "s3cret", nil }
	sent := 0
	o.Transport.Proxy = func(r *http.Request) (*url.URL, error) { // before each request
		if r.URL.Path != "/token" {
			return nil, nil
		}
		sent++
		return nil, errors.New("no answer")
	}
	_, err := login.Login(t.Context(), o, browser(t))
	if requireError(t, err, "no answer"); sent != 1 {
		t.Errorf("sent %d times", sent)
	}
}

// Login returns an error if the person denies access.
func TestDenied(t *testing.T) {
	_, o := start(t, logintest.Config{})
	ui := login.UI{Show: func(address string) {
		u, _ := url.Parse(address)
		q := url.Values{"error": {"access_denied"}, "error_description": {"not\x1b[2J \x7f\u0080\u009b\u00a0today"}, "state": {u.Query().Get("state")}}
		go func() {
			if resp, err := http.Get(u.Query().Get("redirect_uri") + "?" + q.Encode()); err == nil {
				resp.Body.Close()
			}
		}()
	}}
	_, err := login.Login(t.Context(), o, ui)
	requireError(t, err, "access_denied: not [2J    \u00a0today")
}

// Logout revokes the tokens if the authorization server supports that, and leaves only the lock file.
func TestLogout(t *testing.T) {
	for _, test := range []struct {
		name   string
		server logintest.Config
		client string
		valid  bool // the tokens are valid afterwards
	}{
		{name: "public client"},
		{name: "secret in the form", server: logintest.Config{Methods: []string{"client_secret_post"}}},
		{name: "secret in the header", server: logintest.Config{Methods: []string{"client_secret_basic"}}},
		{name: "client registered by hand", server: logintest.Config{Clients: map[string]string{"ours": "s3cret"}}, client: "ours"},
		{name: "no refresh token", server: logintest.Config{Param: "access_type=offline"}},
		{name: "no revocation", server: logintest.Config{Edit: replaced("/.well-known/oauth-authorization-server", "revocation_endpoint", "other")}, valid: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, o := start(t, test.server)
			if test.client != "" {
				o.ClientID, o.ClientSecret = test.client, func() (string, error) { return "s3cret", nil }
			}
			if deleted, err := login.Logout(t.Context(), o); deleted || !errors.Is(err, login.ErrNoGrant) {
				t.Errorf("error %v", err)
			}
			g := logIn(t, o)
			before := credentials(o)
			requireServed(t, s, before, "")
			if deleted, err := login.Logout(t.Context(), o); !deleted || err != nil {
				t.Errorf("deleted: %v, error %v", deleted, err)
			}
			if left, _ := filepath.Glob(o.Store.Dir + "/*.json"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if status, _ := call(t, s, before, ""); (status == 200) != test.valid {
				t.Errorf("status %d with the token of before", status)
			}
			g.Expires = time.Now() // so that it is renewed
			check(t, o.Store.Save(g))
			if status, _ := call(t, s, credentials(o), ""); (status == 200) != test.valid {
				t.Errorf("status %d with the refresh token of before", status)
			}
		})
	}
}

// After a logout, an attache that runs reports that it needs a login when its token expires.
func TestLogoutMeanwhile(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: dueLifetime})
	logIn(t, o)
	c := credentials(o)
	if err := c.Set(endingContext{t.Context()}, http.Header{}); err != nil { // reads the grant
		t.Fatal(err)
	}
	if _, err := login.Logout(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	_, err := call(t, s, c, "")
	requireError(t, err, `run "attache login `+o.Name+`"`)
	logIn(t, o)
	requireServed(t, s, c, "")
}

// A refusal that another token would not change renews nothing. The client gets the server's own answer.
func TestOtherRefusals(t *testing.T) {
	s, o := start(t, logintest.Config{})
	g := logIn(t, o)
	c := credentials(o)
	h := http.Header{}
	if err := c.Set(t.Context(), h); err != nil || h.Get("Authorization") != "Bearer "+g.Access {
		t.Fatalf("%v (%v)", h, err)
	}
	for _, r := range []remote.Refusal{
		{Status: 401, Challenge: []string{`Basic realm="x"`}}, {Status: 403}, {Status: 403, Challenge: []string{`Bearer error="invalid_token"`}},
	} {
		r.Sent = h
		if again, err := c.Refused(t.Context(), r); again || err != nil || s.Count("refresh") > 0 {
			t.Errorf("%d %q: again %t (%v), %d refreshes", r.Status, r.Challenge, again, err, s.Count("refresh"))
		}
	}
}

// In a store that cannot be changed nothing is deleted, and nobody is asked to approve a login that
// cannot be saved.
func TestStoreNotWritable(t *testing.T) {
	s, o := start(t, logintest.Config{})
	logIn(t, o)
	locks, _ := filepath.Glob(o.Store.Dir + "/*.lock")
	if len(locks) != 1 || os.Remove(locks[0]) != nil || os.Mkdir(locks[0], 0o700) != nil {
		t.Fatalf("locks %v", locks)
	}
	const want = "the login cannot be locked: "
	if deleted, err := login.Logout(t.Context(), o); deleted || err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("deleted: %v, error %v", deleted, err)
	}
	if _, err := login.Login(t.Context(), o, browser(t)); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v", err)
	}
	if n := s.Count("authorize"); n != 1 || !o.Store.Has(o.URL) {
		t.Errorf("asked %d times, and the store has the login: %v", n, o.Store.Has(o.URL))
	}
}

// Others cannot read the file, and with a key ring its secrets are encrypted.
func TestStore(t *testing.T) {
	for _, test := range []struct {
		name   string
		ring   login.Ring
		sealed bool
	}{
		{"no ring", nil, false},
		{"ring", &ring{}, true},
		{"broken ring", &ring{err: errors.New("locked")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, o := start(t, logintest.Config{Methods: []string{"client_secret_post"}})
			o.Store.Ring = test.ring
			g := logIn(t, o)
			files, _ := filepath.Glob(o.Store.Dir + "/*.json")
			if len(files) != 1 {
				t.Fatalf("files: %v", files)
			}
			info, _ := os.Stat(files[0])
			dir, _ := os.Stat(o.Store.Dir)
			if runtime.GOOS != "windows" && (info.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700) {
				t.Errorf("modes %v and %v", info.Mode(), dir.Mode())
			}
			text, _ := os.ReadFile(files[0])
			for _, secret := range append(s.Secrets(), g.Client) {
				if strings.Contains(string(text), secret) == test.sealed {
					t.Errorf("%s in the file: %v", secret, !test.sealed)
				}
			}
			requireServed(t, s, credentials(o), "")
			if !test.sealed {
				return
			}
			other := &ring{}
			o.Store.Ring = other
			if _, err := call(t, s, credentials(o), ""); err == nil {
				t.Error("it was decrypted without the key")
			}
			logIn(t, o)
			if other.text == test.ring.(*ring).text {
				t.Error("two key rings have the same key")
			}
			o.Store.Ring = &ring{err: errors.New("locked")}
			_, err := call(t, s, credentials(o), "")
			requireError(t, err, "unlock the key ring", "server.oauth.store") // another login would be encrypted again
		})
	}
}

// A file that others can read, or that is not a grant, is not used.
func TestStoreBroken(t *testing.T) {
	s, o := start(t, logintest.Config{})
	logIn(t, o)
	files, _ := filepath.Glob(o.Store.Dir + "/*.json")
	os.Chmod(files[0], 0o644)
	if _, err := call(t, s, credentials(o), ""); runtime.GOOS != "windows" && (err == nil || !strings.Contains(err.Error(), "cannot be read")) {
		t.Errorf("error %v", err)
	}
	os.Chmod(files[0], 0o600)
	os.WriteFile(files[0], []byte("{"), 0o600)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "cannot be read")
	logIn(t, o)
}

// A public server cannot make attache connect to a private address.
func TestU27PrivateAddresses(t *testing.T) {
	local, _ := start(t, logintest.Config{})
	for _, test := range []struct {
		server, issuer, target string
		refused                bool
	}{
		{"https://mcp.example.com/mcp", "", local.URL, true},
		{"https://mcp.example.com/mcp", "", "https://169.254.169.254/latest", true},
		{"https://mcp.example.com/mcp", "", "https://10.0.0.1/", true},
		{"https://mcp.example.com/mcp", "", "https://[::ffff:10.0.0.1]/", true},
		{"https://mcp.example.com/mcp", "", "https://[64:ff9b::a00:1]/", true},
		{"https://mcp.example.com/mcp", "", "https://100.64.0.1/", true},
		{"https://mcp.example.com/mcp", "", "https://198.19.0.1/", true},
		{"https://mcp.example.com/mcp", "", "https://240.0.0.1/", true},
		{"https://mcp.example.com/mcp", "", "https://[64:ff9b:1::a00:1]/", true},
		{"https://mcp.example.com/mcp", "", "https://[fec0::1]/", true},
		{"https://mcp.example.com/mcp", "", "http://login.example.com/", true}, // not https
		{"https://mcp.example.com/mcp", "", "file:///etc/passwd", true},
		{"https://mcp.example.com/mcp", local.URL, local.URL, false}, // from the configuration
		{local.MCP(), "", local.URL, false},
		{local.MCP(), "", "https://10.0.0.1/", true},
	} {
		o := options(t, local)
		o.URL, o.Issuer = test.server, test.issuer
		resp, err := o.Client().Get(test.target)
		if err == nil {
			resp.Body.Close()
		}
		refused := err != nil && (strings.Contains(err.Error(), "not a public address") || strings.Contains(err.Error(), "neither https"))
		if refused != test.refused {
			t.Errorf("%s, %s: error %v", test.server, test.target, err)
		}
	}
}

// A public server cannot make attache connect to a private address by a redirect.
func TestU27Redirect(t *testing.T) {
	local, _ := start(t, logintest.Config{})
	for target, want := range map[string]string{
		local.URL: "from https to http", "https://127.0.0.1:1/": "not a public address", "https://169.254.169.254/latest": "not a public address", "https://example.com/": "",
	} {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metadata" {
				http.Redirect(w, r, target, http.StatusFound)
			}
		}))
		o := options(t, local)
		o.URL, o.Transport = "https://example.com/mcp", s.Client().Transport.(*http.Transport).Clone()
		o.Transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
		}
		resp, err := o.Client().Get("https://example.com/metadata")
		if err == nil {
			resp.Body.Close()
		}
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", target, err)
		}
		s.Close()
	}
}

// A public server cannot make the browser open a page on this machine.
func TestU27PrivatePage(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/mcp":
			w.WriteHeader(http.StatusUnauthorized)
		case "/register":
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, `{"client_id":"x"}`)
		case "/.well-known/oauth-protected-resource":
			io.WriteString(w, `{"resource":"https://example.com/mcp","authorization_servers":["https://example.com"]}`)
		case "/.well-known/oauth-authorization-server":
			io.WriteString(w, `{"issuer":"https://example.com","authorization_endpoint":"http://localhost:1/delete?all=1","token_endpoint":"https://example.com/token",
				"registration_endpoint":"https://example.com/register","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	o := options(t, &logintest.Server{Server: s})
	o.URL, o.Transport = "https://example.com/mcp", s.Client().Transport.(*http.Transport).Clone()
	o.Transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	_, err := login.Login(t.Context(), o, login.UI{Show: func(address string) { t.Fatalf("the browser opens %s", address) }})
	requireError(t, err, "not opened: localhost: this is not a public address")
}

// A proxy resolves names itself, and may be at a private address.
func TestProxy(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	_, o := start(t, logintest.Config{})
	o.URL = "https://mcp.example.com/mcp"
	o.Transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	resp, err := o.Client().Get("https://login.example.com/")
	if err == nil {
		resp.Body.Close()
	}
	requireError(t, err, "Forbidden")
	if asked != "CONNECT login.example.com:443" {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

// A request that contains a secret follows no redirect.
func TestSecretIsNotRedirected(t *testing.T) {
	reached := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		reached = true
	}))
	defer s.Close()
	o := options(t, &logintest.Server{Server: s})
	resp, err := o.Client().Post(s.URL+"/token", "text/plain", strings.NewReader("secret"))
	check(t, err)
	resp.Body.Close()
	if reached {
		t.Error("the request was sent elsewhere")
	}
}

var check = testkit.Check
