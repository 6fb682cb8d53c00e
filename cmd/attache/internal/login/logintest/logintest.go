// Package logintest provides an authorization server and a server that it protects, for tests. It
// approves every login immediately, and checks PKCE, the redirect, the resource, the client's secret,
// and that a code and a refresh token are used only once.
package logintest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config configures the servers. The zero value is a server of revision 2025-11-25 that names its
// metadata, with an authorization server that registers clients.
type Config struct {
	// Protected handles requests with a token. The path of the server is /mcp.
	Protected http.Handler

	NoHeader   bool   // status 401 does not name the metadata
	PRM        string // "" for the path of the server, "root", "none", "named" for one that only the header names, or another resource to claim
	IssuerPath string // of the issuer's address
	IssuerHost string // "" for the host of the server
	Pages      bool   // every other path is answered with an HTML page
	Layout     string // "" for oauth-authorization-server, "insert" or "append" for openid-configuration, "none"

	PKCE          []string // default S256
	NoRegister    bool
	Document      bool     // client id metadata documents are supported
	Methods       []string // token_endpoint_auth_methods_supported
	Clients       map[string]string
	Method        string // the only way in which Clients may send their secrets; "" for both
	Iss           string // sent in the answer; "right" for the issuer
	AdvertisesIss bool
	Scopes        []string      // scopes_supported of the resource
	NoScope       string        // the authorization server refuses logins with this scope
	Offline       bool          // only offline_access gives a refresh token, and only with a consent prompt (OpenID Connect Core, 11)
	Lifetime      time.Duration // of access tokens; 0: not stated
	Resource      string        // the only one with tokens, "-" for none; "" for the server
	Param         string        // such as access_type=offline: without it, no refresh token and no token for a machine

	Needs   func(*http.Request) string                             // the scope that a request needs, or ""
	Refuses bool                                                   // every scope is insufficient
	Edit    func(path string, response *httptest.ResponseRecorder) // changes a response before it is sent
}

// A Server is both servers at one address. After New, only SetLifetime and SetRefuses change its
// Config.
type Server struct {
	*httptest.Server
	Config

	mu      sync.Mutex
	clients map[string]client
	codes   map[string]url.Values
	tokens  map[string]*family // by access token
	refresh map[string]*family // by refresh token, including used ones
	events  map[string]int     // how often they happened
}

type client struct {
	redirects []string
	secret    string
	method    string
}

// A family holds the tokens of one login.
type family struct {
	access, refresh string // the latest
	scope           string
	client          string
	expires         time.Time
	revoked, online bool // online: without a refresh token
}

// New starts the servers.
func New(c Config) *Server {
	if c.PKCE == nil {
		c.PKCE = []string{"S256"}
	}
	s := &Server{Config: c, clients: map[string]client{}, codes: map[string]url.Values{}, tokens: map[string]*family{}, refresh: map[string]*family{}, events: map[string]int{}}
	for id, secret := range c.Clients {
		s.clients[id] = client{secret: secret, method: c.Method}
	}
	s.Server = httptest.NewServer(s.edited())
	return s
}

// MCP returns the address of the protected server.
func (s *Server) MCP() string { return s.URL + "/mcp" }

// Issuer returns the address of the authorization server.
func (s *Server) Issuer() string {
	address := s.URL
	if s.IssuerHost != "" {
		address = strings.Replace(address, "127.0.0.1", s.IssuerHost, 1)
	}
	return address + s.IssuerPath
}

// SetLifetime sets the lifetime of tokens issued from now on.
func (s *Server) SetLifetime(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Lifetime = d
}

// SetRefuses sets whether every request is refused because of an insufficient scope.
func (s *Server) SetRefuses(refuses bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Refuses = refuses
}

// Count returns how often something happened: "authorize", "register", "code", "refresh",
// "replay", "client_credentials", "revoke", "served".
func (s *Server) Count(event string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[event]
}

// Secrets returns all tokens that were issued.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(s.tokens)), maps.Keys(s.refresh))
}

// Revoke revokes all tokens, or only the access tokens.
func (s *Server) Revoke(access bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.tokens {
		f.access = ""
		f.revoked = f.revoked || !access
	}
}

// edited returns the handler of s with Edit.
func (s *Server) edited() http.Handler {
	if s.Edit == nil {
		return s
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := httptest.NewRecorder()
		s.ServeHTTP(response, r)
		s.Edit(r.URL.Path, response)
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		w.Write(response.Body.Bytes())
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const prm, oauth, oidc = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	issuer := strings.TrimSuffix(s.IssuerPath, "/")
	metadata := map[string]string{"": oauth + issuer, "insert": oidc + issuer, "append": issuer + oidc}[s.Layout]
	switch path := r.URL.Path; {
	case path == "/mcp":
		s.protect(w, r)
	case path == prm+"/mcp" && s.PRM != "root" && s.PRM != "named" && s.PRM != "none", path == prm && s.PRM == "root", path == "/named" && s.PRM == "named":
		s.resourceMetadata(w)
	case path == metadata && s.Layout != "none":
		s.serverMetadata(w)
	case path == "/authorize":
		s.authorize(w, r)
	case path == "/register" && !s.NoRegister:
		s.register(w, r)
	case path == "/token":
		s.token(w, r)
	case path == "/revoke":
		s.revoke(w, r)
	case s.Pages:
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<html>"))
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serverMetadata(w http.ResponseWriter) {
	m := map[string]any{
		"issuer": s.Issuer(), "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
		"revocation_endpoint": s.URL + "/revoke", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported":               s.PKCE,
		"authorization_response_iss_parameter_supported": s.AdvertisesIss,
		"client_id_metadata_document_supported":          s.Document,
	}
	if !s.NoRegister {
		m["registration_endpoint"] = s.URL + "/register"
	}
	if s.Methods != nil {
		m["token_endpoint_auth_methods_supported"] = s.Methods
	}
	if s.Offline {
		m["scopes_supported"] = []string{"offline_access"}
	}
	reply(w, 200, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Type      string   `json:"application_type"`
		Grants    []string `json:"grant_types"`
	}
	err := json.NewDecoder(r.Body).Decode(&m)
	if err != nil || len(m.Redirects) != 1 || m.Type != "native" || !slices.Contains(m.Grants, "refresh_token") {
		reply(w, 400, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	c := client{redirects: m.Redirects, method: m.Method}
	answer := map[string]any{"client_id": "client-" + rand.Text(), "redirect_uris": m.Redirects, "token_endpoint_auth_method": m.Method}
	if m.Method != "none" {
		c.secret = "secret-" + rand.Text()
		answer["client_secret"] = c.secret
	}
	s.mu.Lock()
	s.clients[answer["client_id"].(string)] = c
	s.events["register"]++
	s.mu.Unlock()
	reply(w, 201, answer)
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[q.Get("client_id")]
	known = known || s.Document && strings.HasPrefix(q.Get("client_id"), "https://")
	target, err := url.Parse(q.Get("redirect_uri"))
	if !known || c.redirects != nil && !slices.Contains(c.redirects, q.Get("redirect_uri")) || err != nil ||
		q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		q.Get("state") == "" || !s.knows(q) {
		http.Error(w, "this is not a login request: "+r.URL.RawQuery, 400)
		return
	}
	if s.Offline && q.Get("prompt") != "consent" {
		scopes := slices.DeleteFunc(strings.Fields(q.Get("scope")), func(one string) bool { return one == "offline_access" })
		q.Set("scope", strings.Join(scopes, " "))
	}
	code := "code-" + rand.Text()
	s.codes[code] = q
	s.events["authorize"]++
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	if s.NoScope != "" && slices.Contains(strings.Fields(q.Get("scope")), s.NoScope) {
		answer = url.Values{"error": {"invalid_scope"}, "state": {q.Get("state")}}
	}
	if s.Iss != "" {
		answer.Set("iss", cmp.Or(map[string]string{"right": s.Issuer()}[s.Iss], s.Iss))
	}
	target.RawQuery = answer.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(code string) {
		reply(w, 400, map[string]any{"error": code, "error_description": "as the test wants it"})
	}
	id, valid := s.client(r)
	if !valid {
		refuse("invalid_client")
		return
	}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		q := s.codes[r.FormValue("code")]
		delete(s.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if q == nil || q.Get("client_id") != id || q.Get("redirect_uri") != r.FormValue("redirect_uri") || q.Get("resource") != r.FormValue("resource") ||
			q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse("invalid_grant")
			return
		}
		s.events["code"]++
		s.issue(w, &family{client: id, scope: q.Get("scope"), online: !s.hasParam(q)})
	case "refresh_token":
		f := s.refresh[r.FormValue("refresh_token")]
		switch {
		case f == nil || f.revoked || f.client != id || !s.knows(r.Form):
			refuse("invalid_grant")
		case f.refresh != r.FormValue("refresh_token"):
			f.revoked, f.access = true, ""
			s.events["replay"]++
			refuse("invalid_grant")
		default:
			s.events["refresh"]++
			s.issue(w, f)
		}
	case "client_credentials":
		switch {
		case !s.knows(r.Form):
			refuse("invalid_target")
		case !s.hasParam(r.Form):
			refuse("invalid_request")
		default:
			s.events["client_credentials"]++
			s.issue(w, &family{client: id, scope: r.FormValue("scope")})
		}
	default:
		refuse("unsupported_grant_type")
	}
}

// client returns the client of a request, and whether its secret is right and was sent in the right way.
func (s *Server) client(r *http.Request) (id string, valid bool) {
	id, secret := r.FormValue("client_id"), r.FormValue("client_secret")
	user, password, basic := r.BasicAuth()
	if basic {
		id, secret = user, password
	}
	method := s.clients[id].method
	return id, s.clients[id].secret == secret && (method != "client_secret_basic" || basic) && (method != "client_secret_post" || !basic)
}

// revoke revokes the tokens of a login, or only its access token if that is named (RFC 7009, section 2.1). A token
// that is not known is no error.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events["revoke"]++
	id, valid := s.client(r)
	if !valid {
		reply(w, 401, map[string]any{"error": "invalid_client"})
		return
	}
	token := r.FormValue("token")
	if f := cmp.Or(s.refresh[token], s.tokens[token]); f != nil && f.client == id {
		f.access, f.revoked = "", f.revoked || s.refresh[token] != nil
	}
}

func (s *Server) issue(w http.ResponseWriter, f *family) {
	f.access, f.expires = "access-"+rand.Text(), time.Now().Add(max(s.Lifetime, 0))
	s.tokens[f.access] = f
	answer := map[string]any{"access_token": f.access, "token_type": "Bearer", "scope": f.scope}
	if s.Lifetime != 0 {
		answer["expires_in"] = int(s.Lifetime / time.Second)
	}
	if s.renews(f) {
		f.refresh = "refresh-" + rand.Text()
		s.refresh[f.refresh] = f
		answer["refresh_token"] = f.refresh
	}
	reply(w, 200, answer)
}

func (s *Server) renews(f *family) bool {
	offline := slices.Contains(strings.Fields(f.scope), "offline_access")
	return !strings.HasPrefix(f.client, "machine") && (offline || !s.Offline) && !f.online
}

// knows reports whether the authorization server gives tokens for the resource in the parameters.
func (s *Server) knows(params url.Values) bool {
	resource := params.Get("resource")
	switch s.Resource {
	case "":
		return resource != "" && strings.HasPrefix(s.MCP(), resource)
	case "-":
		return !params.Has("resource")
	}
	return resource == s.Resource
}

// hasParam reports whether the parameters have the one that the authorization server wants.
func (s *Server) hasParam(params url.Values) bool {
	name, value, _ := strings.Cut(s.Param, "=")
	return s.Param == "" || params.Get(name) == value
}
