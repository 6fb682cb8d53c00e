package login

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Options describe the remote server of a login, and how to log in.
type Options struct {
	// URL is the address of the remote server. Name is the address to show to people.
	URL, Name string

	// Transport is used for the server and its authorization server. Header is sent to the server.
	Transport *http.Transport
	Header    http.Header

	// ClientID is the id of a client that was registered by hand. ClientSecret returns its secret;
	// nil for none. ClientMetadata is the address of a client id metadata document. Without
	// these, attache registers itself.
	ClientID       string
	ClientSecret   func() (string, error)
	ClientMetadata string

	// Machine selects the client credentials grant, which needs no person.
	Machine bool

	// Issuer is the authorization server to use; empty for the first one that the server offers. If the
	// server offers it only under another address, the metadata there must name Issuer.
	Issuer string

	// Resource is the resource to name to the authorization server instead of the server's own; "-" for none.
	Resource string

	// Params are added to the request for a login or, with Machine, for a token.
	Params map[string]string

	// Scopes, if not empty, are requested instead of those that the server asks for.
	Scopes []string

	// Redirect is the redirect address, on this machine; empty for a free port.
	Redirect string

	// Store has the grants; its zero value has none, and nothing can be saved in it.
	Store Store

	// Secret, if not nil, is called with each token before the token is used.
	Secret func(tokens ...string)
}

// An authority is the authorization server of a server.
type authority struct {
	resource string   // to request tokens for, or ""
	scopes   []string // to request
	message  string   // challenge.message of the server
	assumed  bool     // at the default place of revision 2025-03-26, not named by the server
	*oauthex.AuthServerMeta
}

// A challenge holds the parameters of WWW-Authenticate headers.
type challenge struct {
	metadata string // address of the protected resource metadata
	scopes   []string
	err      string // such as insufficient_scope
	bearer   bool   // the scheme is bearer, or there is no header
	message  string // from the body or the status of the response, in parentheses
}

// parseChallenge reads the values of WWW-Authenticate. A server may send several challenges: the first with
// an address of metadata counts, whatever its scheme. Values that cannot be read count as none.
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

// namesScopes reports whether a server refuses a token because of its scopes. Servers that use the MCP SDK for Go
// name the scopes but not the error.
func (c challenge) namesScopes() bool {
	return c.err == "insufficient_scope" || c.err == "" && len(c.scopes) > 0
}

// discover finds the server's authorization server. asked is true if the server refused a request
// without a token. The scopes are those of the configuration, else those of the challenge, which are what the
// request needs, else all that the metadata names (2025-11-25, basic/authorization, "Scope Selection Strategy").
func (o *Options) discover(ctx context.Context, c *http.Client, ch challenge, asked bool) (*authority, error) {
	prm, unusable, err := o.resourceMetadata(ctx, c, ch.metadata)
	if err != nil {
		return nil, err
	}
	a := &authority{resource: o.URL, scopes: ch.scopes, message: ch.message}
	issuer := cmp.Or(o.Issuer, origin(o.URL)) // revision 2025-03-26: the server's own host
	if prm != nil {
		a.resource = prm.Resource.of(o.URL)
		if len(a.scopes) == 0 {
			a.scopes = prm.ScopesSupported
		}
		issuer = o.chooseIssuer(prm.AuthorizationServers, issuer)
	}
	a.scopes = union(a.scopes) // at most maxScopes
	if len(o.Scopes) > 0 {
		a.scopes = o.Scopes
	}
	if a.resource = cmp.Or(o.Resource, a.resource); a.resource == "-" {
		a.resource = ""
	}
	issuer = strings.TrimSuffix(issuer, "/") // the path of its metadata has none at the end (RFC 8414, 3.1)
	if err := o.checkSecret(issuer); err != nil {
		return nil, err
	}
	if a.AuthServerMeta, err = o.issuerMetadata(ctx, c, issuer); err != nil {
		if unusable != nil {
			return nil, unusable
		}
		return nil, fmt.Errorf("the authorization server %s cannot be used: %w", shown(issuer), err)
	}
	switch {
	case a.AuthServerMeta != nil:
		if err := o.checkPKCE(a); err != nil {
			return nil, fmt.Errorf("the authorization server %s cannot be used: %w", shown(issuer), err)
		}
	case unusable != nil:
		return nil, unusable
	case prm != nil:
		return nil, fmt.Errorf("the authorization server %s has no metadata", shown(issuer))
	case !asked:
		return nil, errors.New("the server asks for no login, and names no authorization server" + ch.message)
	default: // revision 2025-03-26: fixed places
		a.assumed = o.Issuer == ""
		a.AuthServerMeta = &oauthex.AuthServerMeta{Issuer: issuer,
			AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register"}
	}
	return a, nil
}

// checkPKCE returns an error unless the authorization server supports PKCE with S256. If its metadata does not
// say, the configuration must name it. The client credentials grant has no code, and needs no PKCE.
func (o *Options) checkPKCE(a *authority) error {
	methods := a.CodeChallengeMethodsSupported
	switch {
	case o.Machine, slices.Contains(methods, "S256"), methods == nil && o.Issuer != "":
		return nil
	case methods == nil:
		return errors.New("its metadata does not name PKCE with S256: if it supports that, set server.oauth.issuer to it")
	}
	return errors.New("its metadata does not name PKCE with S256")
}

// checkSecret returns an error if the client has a secret and only the server named the issuer that
// would receive it: a malicious server could name its own.
func (o *Options) checkSecret(issuer string) error {
	if o.ClientSecret == nil || o.Issuer != "" || origin(issuer) == origin(o.URL) {
		return nil
	}
	return fmt.Errorf("the client's secret is not sent to %s, which only the server names: if the client is registered there, set server.oauth.issuer to it", shown(issuer))
}

// A protectedResource holds the members of protected resource metadata that attache uses (RFC 9728, 2).
type protectedResource struct {
	Resource             resources `json:"resource"`
	AuthorizationServers []string  `json:"authorization_servers"`
	ScopesSupported      []string  `json:"scopes_supported"`
}

// resources are the resources that metadata is about: one by the standard, but GitLab sends a list.
type resources []string

// UnmarshalJSON implements json.Unmarshaler.
func (r *resources) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]string)(r))
	}
	*r = make(resources, 1)
	return json.Unmarshal(text, &(*r)[0])
}

// of returns the resource of the server at address, or "".
func (r resources) of(address string) string {
	for _, one := range r {
		if covers(one, address) {
			return one
		}
	}
	return ""
}

// resourceMetadata returns the server's protected resource metadata (RFC 9728), or nil if it has
// none. named is the address in the challenge, or "". unusable is an error for metadata that names no
// authorization server, or that cannot be read although the challenge does not name it: older servers
// answer unknown paths with any status, and are their own authorization servers.
func (o *Options) resourceMetadata(ctx context.Context, c *http.Client, named string) (_ *protectedResource, unusable, err error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, nil, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	places := []string{origin(o.URL) + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), origin(o.URL) + wellKnown}
	if named != "" {
		places = append([]string{named}, places...)
	}
	for _, place := range slices.Compact(places) { // without a path in the URL, two are the same
		prm := &protectedResource{}
		found, err := getJSON(ctx, c, place, prm)
		switch {
		case err != nil:
			unusable = fmt.Errorf("the server's metadata about its logins cannot be read: %w", err)
			if named != "" {
				return nil, nil, unusable
			}
			continue
		case !found:
			continue
		case prm.Resource == nil && place != named: // an error, sent with status 200
			unusable = fmt.Errorf("%s names no resource", place)
			continue
		case prm.Resource.of(o.URL) == "": // it must not be used (RFC 9728, section 3.3)
			return nil, nil, fmt.Errorf("%s is about another server, %s: tokens for this one are not asked for there", shown(place), shown(strings.Join(prm.Resource, ", ")))
		case len(prm.AuthorizationServers) == 0:
			unusable = fmt.Errorf("%s names no authorization server", shown(place))
		default:
			unusable = nil
		}
		return prm, unusable, nil
	}
	return nil, unusable, nil
}

// covers reports whether the server at address is the resource, or is below it. Servers use both
// forms, and the TypeScript SDK accepts both.
func covers(resource, address string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil || !strings.EqualFold(r.Scheme, a.Scheme) || !strings.EqualFold(r.Host, a.Host) || r.Fragment != "" {
		return false
	}
	inside := strings.TrimSuffix(r.Path, "/") + "/"
	return strings.HasPrefix(strings.TrimSuffix(a.Path, "/")+"/", inside)
}

// chooseIssuer returns the authorization server to use: one of those that the server offers, or fallback
// if it offers none.
func (o *Options) chooseIssuer(offered []string, fallback string) string {
	if len(offered) == 0 {
		return fallback
	}
	for _, one := range offered {
		if sameIssuer(one, o.Issuer) {
			return one
		}
	}
	return offered[0] // if Issuer is another one, checkIssuer decides
}

// sameIssuer ignores a slash at the end, which servers use and leave out for the same issuer.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// issuerMetadata returns the metadata of the authorization server at address, or nil if it has none. OAuth
// inserts the well-known part before the path of the issuer (RFC 8414, section 3.1), and OpenID appends its
// own; MCP also allows that of OpenID before the path. A reverse proxy that passes on only the path of the
// issuer may answer the other places with status 502 (typescript-sdk issue 1631).
func (o *Options) issuerMetadata(ctx context.Context, c *http.Client, address string) (_ *oauthex.AuthServerMeta, failed error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := u.EscapedPath()
	for _, place := range slices.Compact([]string{oauth + path, openID + path, path + openID}) {
		m := &oauthex.AuthServerMeta{}
		found, err := getJSON(ctx, c, origin(address)+place, m)
		switch {
		case errors.Is(err, errAnswered):
			failed = cmp.Or(failed, err)
		case err != nil:
			return nil, err
		case found:
			return m, o.checkIssuer(m, address)
		}
	}
	return nil, failed
}

// checkIssuer returns an error if the metadata at address names another issuer (RFC 8414, 3.3). The metadata
// of some vendors does, so it may name the issuer of the configuration. Then tokens and secrets go only to
// that issuer's host, because a malicious MCP server could have chosen the address of the metadata.
func (o *Options) checkIssuer(m *oauthex.AuthServerMeta, address string) error {
	switch {
	case sameIssuer(m.Issuer, cmp.Or(o.Issuer, address)):
	case o.Issuer == "" || !sameIssuer(m.Issuer, address):
		return fmt.Errorf("its metadata names another issuer, %s: if this is right, set server.oauth.issuer to it", shown(m.Issuer))
	default:
		return errors.New("server.oauth.issuer names another one, which the server does not use")
	}
	for _, endpoint := range []string{m.TokenEndpoint, m.RevocationEndpoint} {
		if !sameIssuer(m.Issuer, address) && endpoint != "" && origin(endpoint) != origin(m.Issuer) {
			return fmt.Errorf("its metadata names the issuer of server.oauth.issuer, but an endpoint of another host, %s", shown(endpoint))
		}
	}
	return nil
}

func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
