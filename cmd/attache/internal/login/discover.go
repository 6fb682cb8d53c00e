package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Options say which remote server a login is for, and how to log in.
type Options struct {
	// URL is the address of the remote server, Name what people are shown of it.
	URL, Name string

	// Transport reaches the server and its authorization server; Header goes to the
	// server.
	Transport *http.Transport
	Header    http.Header

	// ClientID is that of a client that was registered by hand; ClientSecret returns its
	// secret, nil for none. ClientMetadata is the address of a client id metadata document.
	// With none of them attache registers itself.
	ClientID       string
	ClientSecret   func() (string, error)
	ClientMetadata string

	// Machine has the client log in by itself (client credentials).
	Machine bool

	// Issuer is the one authorization server to use; empty for the one that the server
	// names first.
	Issuer string

	// Scopes are asked for in place of those that the server names.
	Scopes []string

	// Redirect is where the browser brings the answer, on this machine; empty for a port
	// that is free.
	Redirect string

	Store Store

	// Secret, if not nil, is told each token before it is used.
	Secret func(tokens ...string)
}

// An authority is who gives tokens for a server.
type authority struct {
	resource string
	scopes   []string // that a token should have
	said     string   // by the server that wants a token
	assumed  bool     // it is where servers of revision 2025-03-26 have it: nobody has named it
	*oauthex.AuthServerMeta
}

// A challenge is what the values of WWW-Authenticate say.
type challenge struct {
	metadata string // address of the protected resource metadata
	scopes   []string
	err      string // such as insufficient_scope
	bearer   bool   // a bearer token is asked for, or nothing in particular
	said     string // what else the server said, in parentheses
}

func parseChallenge(values []string) (c challenge) {
	all, err := oauthex.ParseWWWAuthenticate(values)
	c.bearer = len(values) == 0 || err != nil
	for _, one := range all {
		if c.metadata != "" || one.Scheme != "bearer" && one.Params["resource_metadata"] == "" {
			continue
		}
		c.bearer = true
		c.metadata, c.err = one.Params["resource_metadata"], one.Params["error"]
		c.scopes = strings.Fields(one.Params["scope"])
	}
	return c
}

// errOpen is returned for a server that asks for no login.
var errOpen = errors.New("the server asks for no login, and names no authorization server")

// discover finds who gives tokens for the server. asked is whether the server refused a
// request without one.
func (o *Options) discover(ctx context.Context, c *http.Client, ch challenge, asked bool) (*authority, error) {
	prm, err := o.resourceMetadata(ctx, c, ch.metadata)
	if err != nil {
		return nil, err
	}
	a := &authority{resource: o.URL, scopes: ch.scopes, said: ch.said}
	issuer := o.Issuer
	switch {
	case prm == nil && issuer == "":
		issuer = origin(o.URL) // revision 2025-03-26: the server's own host
	case prm != nil:
		a.resource = prm.Resource
		if len(a.scopes) == 0 {
			a.scopes = prm.ScopesSupported
		}
		if issuer, err = o.chooseIssuer(prm.AuthorizationServers); err != nil {
			return nil, err
		}
	}
	if len(o.Scopes) > 0 {
		a.scopes = o.Scopes
	}
	if err := o.checkSecret(issuer); err != nil {
		return nil, err
	}
	if a.AuthServerMeta, err = auth.GetAuthServerMetadata(ctx, issuer, c); err != nil {
		return nil, fmt.Errorf("the authorization server %s cannot be used: %w", shown(issuer), err)
	}
	switch {
	case a.AuthServerMeta != nil && !slices.Contains(a.CodeChallengeMethodsSupported, "S256"):
		return nil, fmt.Errorf("the authorization server %s cannot be used: it does not have PKCE with S256", shown(issuer))
	case a.AuthServerMeta != nil:
	case prm != nil || !asked:
		return nil, missing(prm, issuer)
	default: // revision 2025-03-26: fixed places
		a.assumed = o.Issuer == ""
		a.AuthServerMeta = &oauthex.AuthServerMeta{Issuer: issuer,
			AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register"}
	}
	return a, nil
}

// checkSecret returns an error if the client has a secret and only the server says that
// issuer may have it: a server that is not honest would name one of its own.
func (o *Options) checkSecret(issuer string) error {
	if o.ClientSecret == nil || o.Issuer != "" || origin(issuer) == origin(o.URL) {
		return nil
	}
	return fmt.Errorf("the client's secret is not sent to %s, which only the server names: if the client is registered there, set server.oauth.issuer to it", shown(issuer))
}

func missing(prm *oauthex.ProtectedResourceMetadata, issuer string) error {
	if prm == nil {
		return errOpen
	}
	return fmt.Errorf("the authorization server %s has no metadata", shown(issuer))
}

// resourceMetadata returns what the server says of itself (RFC 9728), nil if it says
// nothing. named is where the server says that it is.
func (o *Options) resourceMetadata(ctx context.Context, c *http.Client, named string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	places := []string{origin(o.URL) + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), origin(o.URL) + wellKnown}
	if named != "" {
		places = append([]string{named}, places...)
	}
	for _, place := range slices.Compact(places) {
		prm := &oauthex.ProtectedResourceMetadata{}
		found, err := getJSON(ctx, c, place, prm)
		switch {
		case err != nil:
			return nil, fmt.Errorf("what the server says of its logins cannot be read: %w", err)
		case !found:
			continue
		case !covers(prm.Resource, o.URL):
			return nil, fmt.Errorf("%s is about another server, %s: tokens for this one are not asked for there", place, shown(prm.Resource))
		case len(prm.AuthorizationServers) == 0:
			return nil, fmt.Errorf("%s names no authorization server", place)
		}
		return prm, nil
	}
	return nil, nil
}

// covers reports whether a resource is the server at address, or a part of its origin that
// the server is in. Servers name either.
func covers(resource, address string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil || !strings.EqualFold(r.Scheme, a.Scheme) || !strings.EqualFold(r.Host, a.Host) || r.Fragment != "" {
		return false
	}
	inside := strings.TrimSuffix(r.Path, "/") + "/"
	return strings.HasPrefix(strings.TrimSuffix(a.Path, "/")+"/", inside)
}

// chooseIssuer returns the authorization server to use of those that the server names.
func (o *Options) chooseIssuer(offered []string) (string, error) {
	if o.Issuer == "" {
		return offered[0], nil
	}
	for _, one := range offered {
		if strings.TrimSuffix(one, "/") == strings.TrimSuffix(o.Issuer, "/") {
			return one, nil
		}
	}
	return "", fmt.Errorf("the server does not use the authorization server of server.oauth.issuer; it uses %s", shown(strings.Join(offered, ", ")))
}

// origin returns the scheme and the host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// union returns the scopes of all lists, each once.
func union(lists ...[]string) (all []string) {
	for _, scope := range slices.Concat(lists...) {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}
