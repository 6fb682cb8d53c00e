package login_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/login"
	"github.com/attache-mcp/attache/cmd/attache/internal/login/logintest"
)

// replaced returns a function for [logintest.Config].Edit. In responses from path it replaces old with
// text.
func replaced(path, old, text string) func(string, *httptest.ResponseRecorder) {
	return func(at string, response *httptest.ResponseRecorder) {
		if at == path {
			respond(response, response.Code, strings.Replace(response.Body.String(), old, text, 1))
		}
	}
}

// answered returns a function for [logintest.Config].Edit. It replaces the responses from path.
func answered(path string, status int, body string) func(string, *httptest.ResponseRecorder) {
	return func(at string, response *httptest.ResponseRecorder) {
		if at == path {
			respond(response, status, body)
		}
	}
}

func respond(response *httptest.ResponseRecorder, status int, body string) {
	response.Code = status
	response.Header().Set("Content-Type", "application/json")
	response.Body.Reset()
	response.Body.WriteString(body)
}

// A registration response may have any members that attache does not need. Ory Hydra sends jwks as an
// object (RFC 7591, 2), others times with a fraction.
func TestRegistrationResponse(t *testing.T) {
	for _, member := range []string{`"jwks":{},`, `"jwks":{"keys":[]},`, `"client_id_issued_at":1795780346.5,`, `"scope":["a"],"contacts":"",`, `"client_secret":null,`} {
		s, o := start(t, logintest.Config{Edit: replaced("/register", "{", "{"+member)})
		logIn(t, o)
		requireServed(t, s, credentials(o), "")
	}
}

// Keycloak and Casdoor name a registration endpoint that refuses every client by default.
func TestRegistrationRefused(t *testing.T) {
	const refusal = `{"error":"insufficient_scope","error_description":"Policy 'Trusted Hosts' rejected request"}`
	_, o := start(t, logintest.Config{Edit: answered("/register", http.StatusForbidden, refusal)})
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "cannot register", "Trusted Hosts", "register it by hand, and set server.oauth.client_id")
}

// A response to a registration that has no client is an error. If the server names no authorization server, an error with another
// status than 400 says nothing about logins.
func TestRegistrationErrors(t *testing.T) {
	const nonstandard, none = "the authorization server's answer does not follow the standard", "the server has no login"
	for _, test := range []struct {
		named  bool
		status int
		body   string
		want   string
	}{
		{true, 400, `{"error":"invalid_redirect_uri"}`, "invalid_redirect_uri"},
		{true, 200, `{"error":"invalid_redirect_uri"}`, nonstandard},
		{true, 201, `{"client_name":"x"}`, nonstandard},
		{true, 302, `{"client_id":"x"}`, nonstandard},
		{true, 500, `<html>`, nonstandard},
		{true, 500, `{"client_id":"x"}`, nonstandard},
		{false, 400, `{"error":"invalid_redirect_uri"}`, "invalid_redirect_uri"},
		{false, 404, `{"error":"no such page"}`, none},
		{false, 200, `<html>`, none},
	} {
		c := logintest.Config{Edit: answered("/register", test.status, test.body)}
		if !test.named {
			c.PRM, c.Layout = "none", "none"
		}
		_, o := start(t, c)
		_, err := login.Login(t.Context(), o, browser(t))
		requireError(t, err, test.want)
	}
}

// The content type of metadata and of tokens does not matter if they are JSON.
func TestContentType(t *testing.T) {
	for _, test := range []struct{ path, kind string }{
		{"/.well-known/oauth-protected-resource/mcp", "application/octet-stream"},
		{"/.well-known/oauth-protected-resource/mcp", "text/plain; charset=utf-8"},
		{"/.well-known/oauth-authorization-server/tenant", "application/octet-stream"},
		{"/.well-known/oauth-authorization-server/tenant", "text/html"},
		{"/token", "text/plain"},
		{"/token", ""},
	} {
		s, o := start(t, logintest.Config{IssuerPath: "/tenant", Edit: func(path string, response *httptest.ResponseRecorder) {
			if path == test.path {
				response.Header().Set("Content-Type", test.kind)
			}
		}})
		if _, err := login.Login(t.Context(), o, browser(t)); err != nil {
			t.Errorf("%s as %q: %v", test.path, test.kind, err)
			continue
		}
		requireServed(t, s, credentials(o), "")
	}
}

// An authorization server that sends its refusal as text/plain ends the login too.
func TestRefusalAsText(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: -1, Edit: func(path string, response *httptest.ResponseRecorder) {
		if path == "/token" {
			response.Header().Set("Content-Type", "text/plain")
		}
	}})
	logIn(t, o)
	s.Revoke(false)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "the login has ended", "invalid_grant")
}

// GitHub refuses an expired refresh token with status 200 and with an error code that only GitHub uses.
func TestRefusalOfGitHub(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: -1, Edit: func(path string, response *httptest.ResponseRecorder) {
		replaced("/token", "invalid_grant", "bad_refresh_token")(path, response)
		if path == "/token" {
			response.Code = http.StatusOK
		}
	}})
	logIn(t, o)
	s.Revoke(false)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "the login has ended", "bad_refresh_token", "attache login")
}

// Servers with Spring Security repeat the refresh token in the description of the error. It may be too long to be shown
// whole.
func TestRefusalRepeatsToken(t *testing.T) {
	for _, length := range []int{20, 400} {
		token := strings.Repeat("r", length)
		s, o := start(t, logintest.Config{Lifetime: -1, Edit: func(path string, response *httptest.ResponseRecorder) {
			replaced("/token", "as the test wants it", "Invalid refresh token: "+token+".")(path, response)
		}})
		g := logIn(t, o)
		g.Refresh = token
		check(t, o.Store.Save(g))
		_, err := call(t, s, credentials(o), "")
		requireError(t, err, "invalid_grant: Invalid refresh token: [hidden].: run")
		if all := o.Store.All(); len(all) != 1 || !strings.HasSuffix(all[0].Ended, ": [hidden].") {
			t.Errorf("the store has %+v", all)
		}
	}
}

// casdoorError is the body of Casdoor's error for a path that it does not know. Its status is 200.
const casdoorError = `{"status":"error","msg":"Unauthorized operation"}`

// If a server's protected resource metadata cannot be used, but the server has the metadata of an
// authorization server, attache logs in there.
func TestUnusableResourceMetadata(t *testing.T) {
	const place = "/.well-known/oauth-protected-resource"
	spoil := map[string]func(*httptest.ResponseRecorder){
		"answered 500":      func(r *httptest.ResponseRecorder) { r.Code = http.StatusInternalServerError },
		"is not JSON":       func(r *httptest.ResponseRecorder) { respond(r, 200, "404 p") },
		"names no resource": func(r *httptest.ResponseRecorder) { respond(r, 200, casdoorError) },
	}
	for want, spoil := range spoil {
		for _, layout := range []string{"", "none"} {
			s, o := start(t, logintest.Config{PRM: "none", Layout: layout, Edit: func(path string, response *httptest.ResponseRecorder) {
				if strings.HasPrefix(path, place) {
					spoil(response)
				}
			}})
			if layout == "none" {
				_, err := login.Login(t.Context(), o, browser(t))
				requireError(t, err, want)
				continue
			}
			logIn(t, o)
			requireServed(t, s, credentials(o), "")
		}
	}
}

// Casdoor answers every unknown well-known path with an error that has status 200, and serves a ping without a
// credential, so no challenge names the metadata.
func TestMetadataAtRootOnly(t *testing.T) {
	s, o := start(t, logintest.Config{
		PRM: "root", NoHeader: true, IssuerPath: "/tenant",
		Edit: answered("/.well-known/oauth-protected-resource/mcp", 200, casdoorError),
	})
	logIn(t, o)
	requireServed(t, s, credentials(o), "")
}

// A reverse proxy may pass on only the path of an authorization server, and answer well-known paths at the root with
// status 502. The metadata below the path is found nevertheless.
func TestProxyWithoutRootPaths(t *testing.T) {
	for _, layout := range []string{"append", "none"} {
		s, o := start(t, logintest.Config{IssuerPath: "/tenant", Layout: layout, Edit: func(path string, response *httptest.ResponseRecorder) {
			if strings.HasPrefix(path, "/.well-known/o") && strings.HasSuffix(path, "/tenant") {
				response.Code = http.StatusBadGateway
			}
		}})
		if layout == "none" {
			_, err := login.Login(t.Context(), o, browser(t))
			requireError(t, err, "/.well-known/oauth-authorization-server/tenant answered 502 Bad Gateway")
			continue
		}
		logIn(t, o)
		requireServed(t, s, credentials(o), "")
	}
}

// RFC 9728 allows metadata without authorization_servers. The server may then be its own authorization
// server, or the configuration names one.
func TestNoAuthorizationServers(t *testing.T) {
	edit := replaced("/.well-known/oauth-protected-resource/mcp", "authorization_servers", "others")
	s, o := start(t, logintest.Config{Edit: edit})
	logIn(t, o)
	requireServed(t, s, credentials(o), "")
	_, o = start(t, logintest.Config{Edit: edit, Layout: "none"})
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "names no authorization server")
	s, o = start(t, logintest.Config{Edit: edit, IssuerPath: "/tenant"})
	o.Issuer = s.Issuer()
	logIn(t, o)
}

// The token is for the resource that the metadata names, which may be above the server.
func TestResourceAbove(t *testing.T) {
	s, o := start(t, logintest.Config{PRM: "root"})
	if g := logIn(t, o); g.Resource != s.URL {
		t.Errorf("resource %s", g.Resource)
	}
}

// The metadata of a server may name several resources, as GitLab's does.
func TestSeveralResources(t *testing.T) {
	const place = "/.well-known/oauth-protected-resource/mcp"
	s, o := start(t, logintest.Config{Edit: func(path string, response *httptest.ResponseRecorder) {
		replaced(place, `"resource":"`, `"resource":["https://other.example/mcp","`)(path, response)
		replaced(place, `/mcp","scopes`, `/mcp"],"scopes`)(path, response)
	}})
	if g := logIn(t, o); g.Resource != s.MCP() {
		t.Errorf("resource %s", g.Resource)
	}
	requireServed(t, s, credentials(o), "")
}

// A client that was registered by hand may send its secret in one way only, although the server's
// metadata offers both. Ory Hydra is such a server.
func TestRegisteredMethod(t *testing.T) {
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		for _, offered := range [][]string{nil, {"client_secret_basic", "client_secret_post"}} {
			s, o := start(t, logintest.Config{Clients: map[string]string{"mine": "s", "machine": "s"}, Method: method, Methods: offered, Lifetime: -1})
			o.ClientID, o.ClientSecret, o.Issuer = "mine", func() (string, error) { return "s", nil }, s.Issuer()
			logIn(t, o)
			s.SetLifetime(time.Hour)
			requireServed(t, s, credentials(o), "") // after a renewal
			o.ClientID, o.Machine = "machine", true
			requireServed(t, s, credentials(o), "")
		}
	}
	for _, c := range []logintest.Config{{Method: "client_secret_post", Methods: []string{"client_secret_basic"}}, {Method: "client_secret_basic"}} {
		c.Clients = map[string]string{"mine": "s"}
		s, o := start(t, c)
		o.ClientID, o.ClientSecret, o.Issuer = "mine", func() (string, error) { return "wrong", nil }, s.Issuer()
		_, err := login.Login(t.Context(), o, browser(t))
		requireError(t, err, "invalid_client")
		o.Machine = true
		_, err = call(t, s, credentials(o), "")
		requireError(t, err, "invalid_client")
	}
}

// The client credentials grant has no code, so the authorization server needs no PKCE. The metadata of
// Microsoft Entra ID and Amazon Cognito does not name it.
func TestMachineWithoutPKCE(t *testing.T) {
	s, o := start(t, logintest.Config{Clients: map[string]string{"machine": "s"}, PKCE: []string{}})
	o.ClientID, o.ClientSecret, o.Issuer, o.Machine = "machine", func() (string, error) { return "s", nil }, s.Issuer(), true
	requireServed(t, s, credentials(o), "")
}

// The metadata of Microsoft Entra ID and Amazon Cognito does not say that they support PKCE. attache logs in there if the
// configuration names them, and sends the challenge. If the metadata names other methods only, it does not.
func TestUnknownPKCE(t *testing.T) {
	s, o := start(t, logintest.Config{Edit: replaced("/.well-known/oauth-authorization-server", "code_challenge_methods_supported", "other")})
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "PKCE", "set server.oauth.issuer")
	o.Issuer = s.Issuer()
	logIn(t, o)
	requireServed(t, s, credentials(o), "")
	for _, methods := range [][]string{{}, {"plain"}} {
		s, o := start(t, logintest.Config{PKCE: methods})
		o.Issuer = s.Issuer()
		_, err := login.Login(t.Context(), o, browser(t))
		requireError(t, err, "PKCE with S256")
	}
}

// Some authorization servers refuse a login that names the server as its resource. Microsoft Entra ID knows only
// resources that were registered, and oidc-provider by default none.
func TestOtherResource(t *testing.T) {
	for _, resource := range []string{"-", "api://tools"} {
		s, o := start(t, logintest.Config{Resource: resource, Clients: map[string]string{"machine": "s"}, Lifetime: -1})
		o.Resource = resource
		logIn(t, o)
		s.SetLifetime(time.Hour)
		requireServed(t, s, credentials(o), "") // after a renewal
		o.ClientID, o.ClientSecret, o.Issuer, o.Machine = "machine", func() (string, error) { return "s", nil }, s.Issuer(), true
		requireServed(t, s, credentials(o), "")
		o.Resource = ""
		_, err := call(t, s, credentials(o), "")
		requireError(t, err, "invalid_target", "set server.oauth.resource")
	}
}

// Some authorization servers want parameters of their own. Google gives a refresh token only with access_type=offline,
// and Auth0 gives a token for a server only with audience, also to machines.
func TestParams(t *testing.T) {
	s, o := start(t, logintest.Config{Param: "access_type=offline", Clients: map[string]string{"machine": "s"}, Lifetime: -1})
	logIn(t, o)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "gave no refresh token")
	o.Params = map[string]string{"access_type": "offline"}
	logIn(t, o)
	s.SetLifetime(time.Hour)
	requireServed(t, s, credentials(o), "") // after a renewal
	o.ClientID, o.ClientSecret, o.Issuer, o.Machine = "machine", func() (string, error) { return "s", nil }, s.Issuer(), true
	requireServed(t, s, credentials(o), "")
	o.Params = nil
	_, err = call(t, s, credentials(o), "")
	requireError(t, err, "invalid_request")
}

// Servers that use the MCP SDK for Go name the scopes that a request needs, but not the error insufficient_scope. If the
// token has the scopes, the reason is another one, and the server's own answer says it.
func TestScopesWithoutError(t *testing.T) {
	s, o := start(t, logintest.Config{Scopes: []string{"read"}, Needs: func(r *http.Request) string { return r.URL.Query().Get("scope") },
		Clients: map[string]string{"machine": "s"},
		Edit: func(_ string, response *httptest.ResponseRecorder) {
			text := response.Header().Get("WWW-Authenticate")
			response.Header().Set("WWW-Authenticate", strings.Replace(text, `error="insufficient_scope", `, "", 1))
		}})
	logIn(t, o)
	_, err := call(t, s, credentials(o), "?scope=write")
	requireError(t, err, "more rights for this (write)", "attache login")
	logIn(t, o)
	requireServed(t, s, credentials(o), "?scope=write")
	machine := o
	machine.ClientID, machine.ClientSecret, machine.Issuer, machine.Machine = "machine", func() (string, error) { return "s", nil }, s.Issuer(), true
	c := credentials(machine)
	requireServed(t, s, c, "")
	requireServed(t, s, c, "?scope=write")
	s.SetRefuses(true)
	if status, err := call(t, s, credentials(o), "?scope=write"); status != http.StatusForbidden || err != nil {
		t.Errorf("status %d, error %v", status, err)
	}
}

// An authorization server may grant less than was requested. The login then has those scopes only.
func TestGrantedScopes(t *testing.T) {
	s, o := start(t, logintest.Config{Scopes: []string{"read", "write"}, Needs: func(*http.Request) string { return "write" }, Edit: replaced("/token", "read write", "read")})
	g := logIn(t, o)
	if got := strings.Join(g.Scopes, " "); got != "read" {
		t.Errorf("scopes %s", got)
	}
	s.SetRefuses(true)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "more rights for this (write)")
	o.Scopes, o.Store.Dir = []string{"other"}, t.TempDir()
	if g := logIn(t, o); strings.Join(g.Scopes, " ") != "other" {
		t.Errorf("with the scopes of the configuration: %q", g.Scopes)
	}
}

// A token that cannot be used in the Authorization header is not saved.
func TestUnusableTokens(t *testing.T) {
	for edit, want := range map[[2]string]string{
		{`"Bearer"`, `"DPoP"`}:                              "a token of the type DPoP",
		{`"access_token":"`, `"access_token":"\r\nX: `}:     "a token that no header can hold",
		{`"access_token":"`, `"access_token":" `}:           "a token that no header can hold",
		{`"access_token":"`, `"access_token":"\u007f`}:      "a token that no header can hold",
		{`"access_token":"`, `"access_token":"é`}:           "a token that no header can hold",
		{`"access_token":"`, `"access_token":"","other":"`}: "has no token",
	} {
		_, o := start(t, logintest.Config{Edit: replaced("/token", edit[0], edit[1])})
		_, err := login.Login(t.Context(), o, browser(t))
		requireError(t, err, want)
		if o.Store.Has(o.URL) {
			t.Errorf("%s: it was saved", edit[1])
		}
	}
}

// A login whose registration the authorization server has dropped has ended. If it refuses a client that was registered by
// hand, the login stays, because the secret in the configuration may be wrong.
func TestClientRefused(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		var dropped atomic.Bool
		s, o := start(t, logintest.Config{Lifetime: -1, Clients: map[string]string{"ours": "s"}, Edit: func(path string, response *httptest.ResponseRecorder) {
			if path == "/token" && dropped.Load() {
				respond(response, http.StatusUnauthorized, `{"error":"invalid_client"}`)
			}
		}})
		secret := "s"
		if byHand {
			o.ClientID, o.ClientSecret, o.Issuer = "ours", func() (string, error) { return secret, nil }, s.Issuer()
		}
		logIn(t, o)
		s.SetLifetime(time.Hour)
		s.Revoke(true)
		secret = "wrong"
		dropped.Store(!byHand)
		_, err := call(t, s, credentials(o), "")
		requireError(t, err, "invalid_client", "attache login")
		secret = "s"
		dropped.Store(false)
		if status, err := call(t, s, credentials(o), ""); (status == 200) != byHand {
			t.Errorf("by hand %t: status %d, error %v", byHand, status, err)
		}
	}
}

// If a server names very many scopes, attache keeps and compares 500 of them, and the login stays.
func TestVeryManyScopes(t *testing.T) {
	round := 0
	s, o := start(t, logintest.Config{Scopes: []string{"read"}, Needs: func(r *http.Request) string { return r.URL.Query().Get("scope") },
		Edit: func(_ string, response *httptest.ResponseRecorder) {
			text := response.Header().Get("WWW-Authenticate")
			if !strings.Contains(text, "insufficient_scope") {
				return
			}
			round++
			var many strings.Builder
			for i := range 20_000 {
				fmt.Fprintf(&many, " s%d.%d", round, i)
			}
			response.Header().Set("WWW-Authenticate", strings.Replace(text, `scope="write`, `scope="write`+many.String(), 1))
		}})
	logIn(t, o)
	c := credentials(o)
	for range 3 {
		_, err := call(t, s, c, "?scope=write")
		requireError(t, err, "more rights for this (write")
	}
	g, err := o.Store.Load(o.URL)
	check(t, err)
	if len(g.Wanted) != 500 { // maxScopes
		t.Errorf("%d scopes are kept", len(g.Wanted))
	}
	requireServed(t, s, credentials(o), "?scope=read")
}

// A grant that the store could not read again is not saved.
func TestTooLargeGrant(t *testing.T) {
	_, o := start(t, logintest.Config{})
	logIn(t, o)
	g, err := o.Store.Load(o.URL)
	check(t, err)
	before := g.Access
	g.Access = strings.Repeat("x", 300<<10)
	if err := o.Store.Save(g); err == nil {
		t.Error("it was saved")
	}
	if g, err = o.Store.Load(o.URL); err != nil || g.Access != before {
		t.Errorf("the login before is lost: %v", err)
	}
}

// Logout of a login that has ended revokes nothing, because there are no tokens.
func TestLogoutAfterEnd(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: -1})
	logIn(t, o)
	s.Revoke(false)
	_, err := call(t, s, credentials(o), "")
	requireError(t, err, "the login has ended")
	if deleted, err := login.Logout(t.Context(), o); !deleted || err != nil || s.Count("revoke") > 0 {
		t.Errorf("deleted %t, %d times revoked, error %v", deleted, s.Count("revoke"), err)
	}
}

// A token that is about to expire is used as long as the authorization server does not renew it.
func TestOldTokenWhileNotRenewed(t *testing.T) {
	s, o := start(t, logintest.Config{Lifetime: time.Hour})
	g := logIn(t, o)
	g.Token, g.Expires = s.URL+"/missing", time.Now().Add(9*time.Second) // it is renewed 10 s before
	check(t, o.Store.Save(g))
	c := credentials(o)
	if status, err := call(t, s, c, ""); (status != 200 || err != nil) && time.Now().Before(g.Expires) {
		t.Errorf("status %d, error %v", status, err)
	}
	s.Revoke(true)
	_, err := call(t, s, c, "")
	requireError(t, err, "the login cannot be renewed", "404", "attache login")
}

// A server that answers each GET with an open stream of events has no metadata. The login must not wait
// for the end of the stream.
func TestStreamInsteadOfMetadata(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	_, o := start(t, logintest.Config{})
	o.URL = server.URL + "/mcp"
	_, err := login.Login(t.Context(), o, browser(t))
	requireError(t, err, "the server asks for no login")
}
