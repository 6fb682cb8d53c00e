package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// OAuthSettings configure how attache logs in to a remote server. Most servers need only Grant and
// Store.
type OAuthSettings struct {
	Grant          string // "authorization_code" or "client_credentials"
	ClientID       string
	ClientSecret   setting.Secret
	ClientMetadata string // the address of a client id metadata document
	Issuer         string
	Resource       string // "-" for none
	Params         map[string]string
	Scopes         []string
	Redirect       string
	Store          string // "auto" or "file"
}

// The values of server.oauth.grant and server.oauth.store.
const (
	GrantPerson  = "authorization_code"
	GrantMachine = "client_credentials"
	StoreFile    = "file"
)

func defaultOAuth() OAuthSettings { return OAuthSettings{Grant: GrantPerson, Store: "auto"} }

func (s *Settings) oauthOptions() []setting.Option {
	o := &s.Server.Remote.OAuth
	return []setting.Option{
		{Key: "server.oauth.grant", Help: "authorization_code: a person logs in with \"attache login\"; client_credentials: attache logs in by itself with server.oauth.client_id and client_secret", Value: setting.Choice(&o.Grant, GrantPerson, GrantMachine)},
		{Key: "server.oauth.client_id", Help: "the client that was registered for attache at the authorization server; default: attache registers itself", Value: setting.Text(&o.ClientID)},
		{Key: "server.oauth.client_secret", Help: "its secret: a text, {env: VARIABLE} or {file: FILE}", Value: setting.SecretValue(&o.ClientSecret)},
		{Key: "server.oauth.client_metadata", Help: "the https address of a client id metadata document, used if the authorization server supports it", Value: setting.Text(&o.ClientMetadata, checkDocument)},
		{Key: "server.oauth.issuer", Help: "the authorization server to use, as it names itself in its metadata; default: the first one that the server names", Value: setting.Text(&o.Issuer, checkIssuer)},
		{Key: "server.oauth.resource", Help: "the resource to request tokens for; \"-\" for none; default: the server's own", Value: setting.Text(&o.Resource, checkResource)},
		{Key: "server.oauth.params", Help: "parameters to add to the request for a login or, with client_credentials, for a token, such as {access_type: offline}", Value: params(&o.Params)},
		{Key: "server.oauth.scopes", Help: "scopes to ask for; default: those that the server names", Value: setting.Words{To: &o.Scopes, Check: scope}},
		{Key: "server.oauth.redirect", Help: "the redirect URI that the browser opens after the login, such as http://127.0.0.1:8765/callback; default: one with a free port", Value: setting.Text(&o.Redirect, checkRedirect)},
		{Key: "server.oauth.store", Help: "auto: encrypt saved logins with a key in the system's key ring, if there is one; file: rely on the permissions of the file alone", Value: setting.Choice(&o.Store, "auto", StoreFile)},
	}
}

// hasLogin reports whether o says something of a login to one server: its client, issuer, resource, parameters or
// scopes. They are the values of loginKeys.
func (o *OAuthSettings) hasLogin() bool {
	return o.ClientID+o.ClientMetadata+o.Issuer+o.Resource != "" || o.ClientSecret != (setting.Secret{}) || len(o.Params)+len(o.Scopes) > 0
}

func loginKeys() []string {
	return []string{
		"server.oauth.client_id", "server.oauth.client_secret", "server.oauth.client_metadata", "server.oauth.issuer",
		"server.oauth.resource", "server.oauth.params", "server.oauth.scopes",
	}
}

// Secret returns a function that reads the client's secret, nil if none is configured.
func (o *OAuthSettings) Secret(p cli.Process) func() (string, error) {
	if o.ClientSecret == (setting.Secret{}) {
		return nil
	}
	return func() (string, error) {
		secret, err := o.ClientSecret.Value(p)
		p.Tokens.Add(secret) // its file may have been replaced since the session began
		return secret, err
	}
}

func checkDocument(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return errors.New("is not the address of a document: write one that begins with https:// and has a path")
	}
	return nil
}

func checkIssuer(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("is not the address of an authorization server: write one such as https://login.example.com")
	}
	return nil
}

func checkResource(s string) error {
	if u, err := url.Parse(s); s != "-" && (err != nil || u.Scheme == "" || u.Fragment != "") {
		return errors.New("is not the address of a resource: write one such as https://mcp.example.com or api://tools, or \"-\"")
	}
	return nil
}

// params returns a value that is a map of parameters.
func params(to *map[string]string) setting.Value {
	return setting.ByName[string]{To: to, Check: checkParam, Value: func(s *string) setting.Value { return setting.Text(s) }}
}

func checkParam(name string) error {
	switch name {
	case "resource", "scope", "redirect_uri", "client_id", "client_secret":
		return fmt.Errorf("%s has a key of its own in server.oauth: set that", name)
	case "response_type", "response_mode", "state", "code_challenge", "code_challenge_method", "grant_type", "client_assertion", "client_assertion_type":
		return fmt.Errorf("%s is set by attache: remove it", name)
	case "request", "request_uri": // the parameters in its object replace all others (RFC 9101, 6.3)
		return fmt.Errorf("%s would replace what attache sets: remove it", name)
	}
	return setting.NotEmpty(name)
}

func checkRedirect(s string) error {
	u, err := url.Parse(s)
	local := err == nil && slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname())
	if !local || u.Scheme != "http" || !isPort(u.Port()) || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("is not an address on this machine: write one such as http://127.0.0.1:8765/callback")
	}
	return nil
}
