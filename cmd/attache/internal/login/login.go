package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// loginTime is the timeout for a person to log in.
const loginTime = 5 * time.Minute

// Login asks a person to log in to the server, and saves the grant. It holds the lock of the store only to
// save: while the person approves, which may take loginTime, other processes may have to renew the old grant.
func Login(ctx context.Context, o Options, ui UI) (*Grant, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginTime, errors.New("no answer came from the browser within 5 minutes: try again"))
	defer cancel()
	unlock, err := o.Store.Lock(ctx, o.URL) // so that nobody approves a login that cannot be saved
	if err != nil {
		return nil, err
	}
	unlock()
	c := o.Client()
	ch, asked, err := o.probe(ctx)
	if err != nil {
		return nil, err
	}
	a, err := o.discover(ctx, c, ch, asked)
	if err != nil {
		return nil, err
	}
	wanted := union(a.scopes)
	// A login for more rights must not lose those that the last one had.
	if old, err := o.Store.Load(o.URL); err == nil && old.Issuer == a.Issuer {
		a.scopes = union(a.scopes, old.Scopes, old.Wanted)
	}
	g, err := o.authorize(ctx, c, a, ui)
	if isScopeRefused(err) && slices.Contains(a.ScopesSupported, "offline_access") && !slices.Contains(a.scopes, "offline_access") {
		// attache has added that scope itself, and the server may not give it to this client.
		ui.Say("the authorization server refuses a scope: attache asks again without offline_access")
		a.ScopesSupported = nil
		g, err = o.authorize(ctx, c, a, ui)
	}
	if isScopeRefused(err) && len(a.scopes) > len(wanted) {
		return nil, fmt.Errorf("%w; attache also asked for rights that the last login had or lacked: run \"attache logout %s\" to forget them", err, o.Name)
	}
	if err != nil {
		return nil, err
	}
	if unlock, err = o.Store.Lock(ctx, o.URL); err != nil {
		return nil, err
	}
	defer unlock()
	if err := o.Store.Save(g); err != nil {
		return nil, fmt.Errorf("the login cannot be saved: %w", err)
	}
	return g, nil
}

// isScopeRefused reports whether the authorization server does not give one of the scopes.
func isScopeRefused(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	return ok && refused.code == "invalid_scope"
}

// probe sends a ping without a credential, to learn which credential the server requires. A ping
// opens no session. It reports whether the server refused the request with status 401.
func (o *Options) probe(ctx context.Context) (challenge, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return challenge{}, false, err
	}
	maps.Copy(r.Header, o.Header)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := (&http.Client{Transport: o.Transport, CheckRedirect: sameOrigin}).Do(r)
	if network, ok := errors.AsType[*url.Error](err); ok {
		err = network.Err // without the URL, whose query may have a token
	}
	if err != nil {
		return challenge{}, false, fmt.Errorf("the server cannot be reached: %w", short(err))
	}
	defer resp.Body.Close()
	ch := parseChallenge(resp.Header.Values("WWW-Authenticate"))
	asked := resp.StatusCode == http.StatusUnauthorized
	switch {
	case asked: // otherwise the response may be an endless stream
		ch.message = messageOf(resp.Body)
	case resp.StatusCode >= 300 && resp.StatusCode != http.StatusBadRequest: // 400 is the usual answer to a ping without a session
		ch.message = " (it answered HTTP " + shown(resp.Status) + ": check the address)"
	}
	if asked && !ch.bearer {
		return ch, asked, errors.New("the server wants a credential that is not an OAuth token: give it in server.headers" + ch.message)
	}
	return ch, asked, nil
}

// messageOf returns the message in the body of a response with status 401, as [quoted] does.
func messageOf(body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	var reply struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &reply) == nil && reply.Error.Message != "" {
		text = []byte(reply.Error.Message)
	}
	return quoted(string(text))
}

// quoted returns a server's message in parentheses, or "" if it is empty.
func quoted(message string) string {
	if message = strings.TrimSpace(shown(message)); message == "" {
		return ""
	}
	return " (it says: " + message + ")"
}

// sameOrigin allows redirects only within the server.
func sameOrigin(r *http.Request, via []*http.Request) error {
	if len(via) > 5 || origin(r.URL.String()) != origin(via[0].URL.String()) {
		return http.ErrUseLastResponse
	}
	return nil
}

// authorize asks a person to approve in a browser, and exchanges the code for tokens.
func (o *Options) authorize(ctx context.Context, c *http.Client, a *authority, ui UI) (*Grant, error) {
	// The verifier and the state exist only here, so logins at the same time do not share them.
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	r, err := listen(o.Redirect, state)
	if err != nil {
		return nil, err
	}
	defer r.close()
	scopes := a.scopes
	if slices.Contains(a.ScopesSupported, "offline_access") { // the scope that asks for a refresh token
		scopes = union(scopes, []string{"offline_access"})
	}
	g := &Grant{URL: o.URL, Resource: a.resource, Issuer: a.Issuer, Token: a.TokenEndpoint, Revocation: a.RevocationEndpoint, Scopes: scopes}
	if err := o.identify(ctx, c, a, g, r.url.String()); err != nil {
		return nil, err
	}
	secret, err := o.clientSecret(g)
	if err != nil {
		return nil, err
	}
	cfg := &oauth2.Config{
		ClientID: g.ClientID, ClientSecret: secret, RedirectURL: r.url.String(), Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: a.AuthorizationEndpoint, TokenURL: g.Token},
	}
	params := append(g.resourceParam(), oauth2.S256ChallengeOption(verifier))
	if slices.Contains(scopes, "offline_access") {
		// Without it an OpenID provider ignores that scope (OpenID Connect Core, 11).
		params = append(params, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	for name, value := range o.Params {
		params = append(params, oauth2.SetAuthURLParam(name, value))
	}
	address := cfg.AuthCodeURL(state, params...)
	u, err := url.Parse(address)
	if err == nil {
		_, err = c.Transport.(*guard).admits(u) // a server elsewhere must not have a page of this machine opened
	}
	if err != nil {
		return nil, fmt.Errorf("the authorization server's page %s is not opened: %w", shown(a.AuthorizationEndpoint), err)
	}
	ui.Show(address)
	answer, err := r.wait(ctx, ui)
	if err != nil {
		return nil, err
	}
	code, err := checkAnswer(answer, a)
	if err != nil {
		return nil, err
	}
	err = exchange(ctx, c, cfg, g, code, verifier)
	if o.changeStyle(a, g, err) {
		err = exchange(ctx, c, cfg, g, code, verifier)
	}
	return g, err
}

// resourceParam returns the parameter that names the resource of g, if it has one.
func (g *Grant) resourceParam() []oauth2.AuthCodeOption {
	if g.Resource == "" {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", g.Resource)}
}

// exchange exchanges the code for the token of g.
func exchange(ctx context.Context, c *http.Client, cfg *oauth2.Config, g *Grant, code, verifier string) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, c), stepTime)
	defer cancel()
	cfg.Endpoint.AuthStyle = g.Style
	token, err := cfg.Exchange(ctx, code, append(g.resourceParam(), oauth2.VerifierOption(verifier))...)
	if err != nil {
		return tokenError(err, code)
	}
	return g.setToken(token, time.Now())
}

// checkAnswer returns the code in the answer. It refuses an answer of another issuer (RFC 9207), and
// one without an issuer if the metadata promises that parameter.
func checkAnswer(answer url.Values, a *authority) (string, error) {
	issuer := answer.Get("iss")
	switch {
	case issuer == "" && a.AuthorizationResponseIssParameterSupported:
		return "", errors.New("the answer does not name its authorization server, although that server always does so: it was not used")
	case issuer != "" && issuer != a.Issuer:
		return "", fmt.Errorf("the answer is of another authorization server, %s: it was not used", shown(issuer))
	case answer.Get("error") != "":
		return "", &refusedError{shown(answer.Get("error")), shown(answer.Get("error_description"))}
	case answer.Get("code") == "":
		return "", errors.New("the authorization server's answer has no code")
	}
	return answer.Get("code"), nil
}

// setToken sets the token of the grant. A response without a refresh token leaves the old one valid, and one
// without a scope has granted what was requested (RFC 6749, sections 6 and 5.1).
func (g *Grant) setToken(t *oauth2.Token, now time.Time) error {
	if t.TokenType != "" && !strings.EqualFold(t.TokenType, "bearer") {
		return fmt.Errorf("the authorization server gave a token of the type %s, which is not supported", shown(t.TokenType))
	}
	if strings.ContainsFunc(t.AccessToken, func(c rune) bool { return c <= ' ' || c >= 0x7F }) {
		return errors.New("the authorization server gave a token that no header can hold")
	}
	g.Access, g.Expires, g.Obtained, g.Ended = t.AccessToken, t.Expiry, now.UTC().Truncate(time.Second), ""
	g.Refresh = cmp.Or(t.RefreshToken, g.Refresh)
	if scope, _ := t.Extra("scope").(string); scope != "" {
		scopes := strings.Fields(scope)
		if len(scopes) == 1 && !slices.Contains(g.Scopes, scope) {
			scopes = strings.Split(scope, ",") // of GitHub and Slack
		}
		g.Scopes = scopes
	}
	return nil
}

// identify sets the client of the grant: the one that was registered by hand, the one that a document
// describes, or a new one that it registers. Each login registers a new client, because the port in
// the redirect address changes, and because with a registration that the server has dropped the
// browser would show an error page.
func (o *Options) identify(ctx context.Context, c *http.Client, a *authority, g *Grant, redirect string) error {
	switch {
	case o.ClientID != "":
		g.ClientID, g.Style = o.ClientID, oauth2.AuthStyleInParams
		if o.ClientSecret != nil {
			g.Style = secretStyle(a)
		}
		return nil
	case o.ClientMetadata != "" && a.ClientIDMetadataDocumentSupported:
		g.ClientID, g.Style = o.ClientMetadata, oauth2.AuthStyleInParams
		return nil
	case a.RegistrationEndpoint == "" && a.ClientIDMetadataDocumentSupported:
		return fmt.Errorf("the authorization server %s registers no clients by itself: publish a client id metadata document, and set server.oauth.client_metadata to its address; or register attache there, and set server.oauth.client_id and server.oauth.redirect", shown(a.Issuer))
	case a.RegistrationEndpoint == "":
		return fmt.Errorf("the authorization server %s registers no clients by itself: register attache there, with the redirect address http://127.0.0.1:8765/callback, and set server.oauth.client_id and server.oauth.redirect", shown(a.Issuer))
	}
	m := &oauthex.ClientRegistrationMetadata{
		ClientName: "attache", RedirectURIs: []string{redirect}, ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		Scope: strings.Join(g.Scopes, " "), TokenEndpointAuthMethod: registeredMethod(a),
	}
	reply, err := a.register(ctx, c, m)
	if err != nil {
		return err
	}
	g.ClientID, g.Client, g.Style = reply.ClientID, reply.ClientSecret, reply.style()
	return nil
}

// secretStyle returns how to send the secret. The library would try both ways, and a server can treat
// a second use of a refresh token as theft.
func secretStyle(a *authority) oauth2.AuthStyle {
	if slices.Contains(a.TokenEndpointAuthMethodsSupported, "client_secret_post") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// changeStyle changes how the secret is sent, after the error of a first token request. A client that
// was registered by hand may send it in one way only, and the metadata does not say in which. A server
// that refuses the client has not used the code. changeStyle returns false if err has another reason,
// or the server does not offer the other way.
func (o *Options) changeStyle(a *authority, g *Grant, err error) bool {
	if err == nil || o.ClientSecret == nil || g.ClientID != o.ClientID {
		return false
	}
	refused, ok := errors.AsType[*refusedError](err)
	style, method := oauth2.AuthStyleInHeader, "client_secret_basic"
	if g.Style == oauth2.AuthStyleInHeader {
		style, method = oauth2.AuthStyleInParams, "client_secret_post"
	}
	offered := a.TokenEndpointAuthMethodsSupported
	if !ok || refused.code != "invalid_client" || len(offered) > 0 && !slices.Contains(offered, method) {
		return false
	}
	g.Style = style
	return true
}

// clientSecret returns the secret of the grant's client, or "".
func (o *Options) clientSecret(g *Grant) (string, error) {
	if g.ClientID == o.ClientID && o.ClientSecret != nil {
		return o.ClientSecret()
	}
	return g.Client, nil
}

// Logout deletes the grant for the server and revokes it if the authorization server supports that. It
// deletes first, so that a server that does not answer cannot keep the grant here.
// deleted is true if there was a grant and it was deleted, even if an error follows.
func Logout(ctx context.Context, o Options) (deleted bool, err error) {
	unlock, err := o.Store.Lock(ctx, o.URL)
	if err != nil {
		return false, err
	}
	defer unlock()
	g, err := o.Store.Load(o.URL)
	if errors.Is(err, ErrNoGrant) {
		return false, err
	}
	if err := o.Store.Delete(o.URL); err != nil {
		return false, err
	}
	if err != nil || g.Revocation == "" || g.Access == "" && g.Refresh == "" { // a login that has ended has no tokens
		return true, err
	}
	return true, o.revoke(ctx, g)
}

// revoke revokes the tokens of a grant (RFC 7009). With the refresh token, the authorization server should
// also revoke the access tokens of the same login (section 2.1).
func (o *Options) revoke(ctx context.Context, g *Grant) error {
	secret, err := o.clientSecret(g)
	if err != nil {
		return err
	}
	form := url.Values{"token": {g.Access}, "token_type_hint": {"access_token"}}
	if g.Refresh != "" {
		form = url.Values{"token": {g.Refresh}, "token_type_hint": {"refresh_token"}}
	}
	if g.Style == oauth2.AuthStyleInParams {
		form.Set("client_id", g.ClientID)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g.Style == oauth2.AuthStyleInHeader {
		// Encoded as in a form (RFC 6749, section 2.3.1).
		r.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(secret))
	}
	resp, err := o.Client().Do(r)
	if err != nil {
		return fmt.Errorf("the authorization server did not revoke the tokens: %w", err)
	}
	io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the authorization server did not revoke the tokens: it answered %s", shown(resp.Status))
	}
	return nil
}
