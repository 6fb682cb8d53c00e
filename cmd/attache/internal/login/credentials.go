package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/attache-mcp/attache/proxy/remote"
)

// Credentials add tokens to the requests of a process. They implement remote.Credentials, and never
// ask the user anything.
type Credentials struct {
	Options
	Log *slog.Logger

	// lock guards the fields below. It is a channel and not a mutex, so that a call that is
	// cancelled stops waiting for it.
	lock chan struct{}

	read      bool   // grant is that of the store; never with Machine
	grant     *Grant // nil: none
	failed    error  // of the last renewal or login of a machine; nil if it succeeded
	failedAt  time.Time
	stale     string // the access token in the store, if grant could not be saved
	warned    bool   // loginError has logged
	announced string // the last access token that was passed to Secret
}

// NewCredentials returns the credentials for a server. It reads nothing before the first request.
func NewCredentials(o Options, log *slog.Logger) *Credentials {
	return &Credentials{Options: o, Log: log, lock: make(chan struct{}, 1)}
}

// renewTime is the timeout for renewing a token. Cancelling the call that needs the token does not
// cancel the renewal, because an interrupted renewal loses the login.
const renewTime = 45 * time.Second

// mayRenew reports whether a request has the time to renew its token. The DELETE at the end of a
// session has not: clients kill their servers after two seconds, and an interrupted renewal loses the
// login.
func mayRenew(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) >= time.Second
}

// errNotRenewed is returned if the authorization server gave no new token, but may do so later. Until
// the old token expires, requests use it.
var errNotRenewed = errors.New("cannot be renewed")

// acquire locks c, unless ctx ends first. It may take as long as the renewal that another call has begun.
func (c *Credentials) acquire(ctx context.Context) error {
	select {
	case c.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Credentials) release() { <-c.lock }

// Set implements remote.Credentials. Without a login it sets no token, because the server may not
// require one. With Machine the first token is got by Refused, which knows the server's challenge.
func (c *Credentials) Set(ctx context.Context, h http.Header) error {
	began := time.Now()
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	if !c.read && !c.Machine {
		g, err := c.Store.Load(c.URL)
		if err != nil && !errors.Is(err, ErrNoGrant) {
			return c.loginError(err.Error())
		}
		c.grant, c.read = g, true
	}
	if c.grant == nil {
		return nil
	}
	if c.grant.expired(time.Now()) && mayRenew(ctx) {
		// If the authorization server does not answer, the old token is used as long as it is valid.
		err := c.unlessFailed(ctx, began, func() error { return c.renew(ctx, c.grant.Access) })
		if err != nil && !(errors.Is(err, errNotRenewed) && time.Now().Before(c.grant.Expires)) { // after a logout, grant is nil
			return err
		}
	}
	if c.Secret != nil && c.announced != c.grant.Access {
		c.announced = c.grant.Access
		c.Secret(c.grant.Access, c.grant.Refresh, c.grant.Client)
	}
	h.Set("Authorization", "Bearer "+c.grant.Access)
	return nil
}

// Refused implements remote.Credentials. A 401 is about the token, so another one may help. A 403 is about
// rights, and another token helps only if it has more of them. Neither helps if the server wants a credential
// that is no token.
func (c *Credentials) Refused(ctx context.Context, r remote.Refusal) (again bool, err error) {
	ch := parseChallenge(r.Challenge)
	more := r.Status == http.StatusForbidden
	if !ch.bearer || more && !ch.namesScopes() || !mayRenew(ctx) {
		return false, nil
	}
	began := time.Now()
	if err := c.acquire(ctx); err != nil {
		return false, err
	}
	defer c.release()
	sent, _ := strings.CutPrefix(r.Sent.Get("Authorization"), "Bearer ")
	switch {
	case c.grant != nil && c.grant.Access != sent:
		return true, nil // another call has renewed the token since
	case more && ch.err == "" && (c.grant == nil || c.grant.has(ch.scopes)):
		return false, nil // the server has another reason
	case c.Machine && more:
		err = c.machineLogin(ctx, ch, more)
	case c.Machine:
		err = c.unlessFailed(ctx, began, func() error { return c.machineLogin(ctx, ch, more) })
	case more:
		err = c.requestScopes(ctx, sent, ch.scopes)
	case ch.metadata == "" && !c.Store.Has(c.URL):
		c.grant = nil
		err = c.loginError("the server wants a credential and does not name a place to log in" + quoted(r.Said) + ". If you have a key or a token for it, name the variable that holds it with --bearer-env, or set server.headers; if the server has a login")
	default:
		err = c.unlessFailed(ctx, began, func() error { return c.renew(ctx, sent) })
	}
	return err == nil, err
}

// loginError returns the error for a request that needs a login. It logs the first one.
func (c *Credentials) loginError(why string) error {
	err := fmt.Errorf("%s: run \"attache login %s\"", why, c.Name)
	if !c.warned {
		c.warned = true
		c.Log.Warn("the remote server wants a login", "err", err)
	}
	return err
}

// underLock calls f with the grant on disk, while no other process can change it. Cancelling ctx does
// not interrupt f. The caller holds c.lock; the lock of the store comes second.
func (c *Credentials) underLock(ctx context.Context, f func(context.Context, *Grant) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	if !c.Store.Has(c.URL) {
		c.grant = nil
		return c.loginError("the server wants a login, or a credential (--bearer-env)")
	}
	unlock, err := c.Store.Lock(ctx, c.URL)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := c.Store.Load(c.URL)
	if err != nil {
		return c.loginError(err.Error())
	}
	c.read = true
	if c.stale != "" && g.Access == c.stale && c.grant != nil {
		g = c.grant // it replaced the one on disk, whose refresh token is used up
	}
	return f(ctx, g)
}

// unlessFailed calls f to get a token. began is when the request began to wait. If f has failed for another
// request since then, unlessFailed returns that error and does not try again: otherwise many requests would wait one
// after the other for an authorization server that does not answer.
func (c *Credentials) unlessFailed(ctx context.Context, began time.Time, f func() error) (err error) {
	if c.failed != nil && began.Before(c.failedAt) {
		return c.failed
	}
	defer func() {
		if c.failed, c.failedAt = err, time.Now(); ctx.Err() != nil {
			c.failed = nil // it may have failed only because this request was cancelled
		}
	}()
	return f()
}

// renew replaces a token that has expired or was refused, by one that another process has obtained
// since, or by a new one.
func (c *Credentials) renew(ctx context.Context, old string) error {
	if c.Machine {
		if err := c.machineToken(ctx, *c.grant); err != nil {
			return fmt.Errorf("the token %w: %w", errNotRenewed, err)
		}
		return nil
	}
	return c.underLock(ctx, func(ctx context.Context, g *Grant) error {
		switch {
		case g.Ended != "":
			return c.loginError("the login has ended: " + g.Ended)
		case g.Access != old && !g.expired(time.Now()): // another process has renewed it
			c.grant = g
			return nil
		case g.Refresh == "":
			return c.loginError("the login has ended, and the authorization server gave no refresh token")
		}
		stored := g.Access
		// Without scopes, the new token has those of the old one (RFC 6749, section 6).
		err := c.request(ctx, g, nil, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}})
		switch {
		case c.isEnd(err, g):
			// No process may use the same token again: the server could treat that as theft.
			g.Ended, g.Access, g.Refresh = err.Error(), "", ""
			return c.loginError("the login has ended: " + errors.Join(err, c.Store.Save(g)).Error())
		case err != nil:
			return fmt.Errorf("the login %w: %w; if this persists, run \"attache login %s\"", errNotRenewed, err, c.Name)
		}
		c.keep(g, stored)
		return nil
	})
}

// keep saves and uses a renewed grant. stored is the access token of the grant in the store. If g
// cannot be saved, it is used nevertheless, because the grant in the store is no longer valid.
func (c *Credentials) keep(g *Grant, stored string) {
	err := c.Store.Save(g)
	if c.grant = g; err == nil {
		c.stale = ""
		return
	}
	if c.stale == "" {
		c.stale = stored
		c.Log.Warn("the renewed login cannot be saved: this process uses it until it ends, and others will have to log in again", "err", err)
	}
}

// isEnd reports whether an error means that the grant is no longer valid. A wrong secret of a client
// that was registered by hand does not, because it can be corrected.
func (c *Credentials) isEnd(err error, g *Grant) bool {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		return false
	}
	switch refused.code {
	case "invalid_grant", "bad_refresh_token": // GitHub sends the second
		return true
	case "invalid_client", "unauthorized_client": // the server has dropped the registration of attache
		return g.ClientID != c.ClientID
	}
	return false
}

// request requests a token for the resource of g with the given parameters, and stores it in g. It also
// refreshes tokens, because the library's refresh cannot send the resource; its clientcredentials can, and
// lets params replace the grant type.
func (c *Credentials) request(ctx context.Context, g *Grant, scopes []string, params url.Values) error {
	secret, err := c.clientSecret(g)
	if err != nil {
		return err
	}
	if g.Resource != "" {
		params.Set("resource", g.Resource)
	}
	cfg := &clientcredentials.Config{ClientID: g.ClientID, ClientSecret: secret, TokenURL: g.Token, Scopes: scopes, AuthStyle: g.Style, EndpointParams: params}
	token, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, c.Client()))
	if err != nil {
		return tokenError(err, params.Get("refresh_token"))
	}
	return g.setToken(token, time.Now())
}

// requestScopes saves the scopes that a call lacks, so that the next login requests them too. If there
// was a login since, it uses that instead. Otherwise it returns an error: only a person can give more rights.
func (c *Credentials) requestScopes(ctx context.Context, sent string, scopes []string) error {
	return c.underLock(ctx, func(_ context.Context, g *Grant) error {
		if g.Access != sent && g.Usable(time.Now()) {
			c.grant = g
			return nil
		}
		if g.has(scopes) {
			return scopeError(scopes)
		}
		g.Wanted = union(g.Wanted, scopes)
		return errors.Join(c.loginError("the server wants more rights for this ("+shown(strings.Join(scopes, " "))+")"), c.Store.Save(g))
	})
}

// scopeError returns the error for a server that refuses a token because of scopes that the token
// has. A new token would not help.
func scopeError(scopes []string) error {
	return fmt.Errorf("the server wants scopes that the token has already (%s): ask whoever runs the server", shown(strings.Join(scopes, " ")))
}

// machineLogin finds the server's authorization server, and gets a token with the client's own
// secret. more is true if the previous token lacked scopes. If the server then names no scope that the
// token did not have, a new token would be refused again.
func (c *Credentials) machineLogin(ctx context.Context, ch challenge, more bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	a, err := c.discover(ctx, c.Client(), ch, true)
	if err != nil {
		return err
	}
	g := Grant{URL: c.URL, Resource: a.resource, Issuer: a.Issuer, Token: a.TokenEndpoint, ClientID: c.ClientID, Style: secretStyle(a), Scopes: a.scopes}
	if c.grant != nil && c.grant.Issuer == g.Issuer {
		g.Scopes = union(c.grant.Scopes, a.scopes)
		if more && len(g.Scopes) == len(c.grant.Scopes) {
			return scopeError(ch.scopes)
		}
	}
	err = c.machineToken(ctx, g)
	if c.changeStyle(a, &g, err) {
		err = c.machineToken(ctx, g)
	}
	return err
}

// machineToken gets a token for the grant g with the client's own secret, and then uses g.
func (c *Credentials) machineToken(ctx context.Context, g Grant) error {
	params := url.Values{}
	for name, value := range c.Params {
		params.Set(name, value)
	}
	if err := c.request(ctx, &g, g.Scopes, params); err != nil {
		return fmt.Errorf("the client credentials give no token: %w", err)
	}
	c.grant = &g
	return nil
}
