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

// Credentials give the requests of a process their token. They implement
// remote.Credentials, and never ask a person anything.
type Credentials struct {
	Options
	Log *slog.Logger

	// turn is held by who reads or renews the grant. It is no mutex, so that a call
	// that is cancelled need not wait for it.
	turn chan struct{}

	// The rest belongs to who holds the turn.
	read      bool
	grant     *Grant // nil: none
	stale     string // the access token in the store, where grant could not be saved
	warned    bool
	announced string // the access token that Secret was told last
}

// NewCredentials returns the credentials for a server. Nothing is read before the first
// request.
func NewCredentials(o Options, log *slog.Logger) *Credentials {
	return &Credentials{Options: o, Log: log, turn: make(chan struct{}, 1)}
}

// renewTime is how long a token may take to be renewed. The call that needs it may be
// cancelled before; the renewal goes on, as half of one loses the login.
const renewTime = 45 * time.Second

// take waits for the turn.
func (c *Credentials) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Credentials) release() { <-c.turn }

// Set implements remote.Credentials. A server that nobody is logged in to is asked
// without a token: it may want none.
func (c *Credentials) Set(ctx context.Context, h http.Header) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.release()
	if !c.read && !c.Machine {
		g, err := c.Store.Load(c.URL)
		if err != nil && !errors.Is(err, ErrNoGrant) {
			return c.wanting(err.Error())
		}
		c.grant, c.read = g, true
	}
	if c.grant == nil {
		return nil
	}
	if c.grant.expired(time.Now()) {
		if err := c.renew(ctx, c.grant.Access); err != nil {
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

// Refused implements remote.Credentials.
func (c *Credentials) Refused(ctx context.Context, r remote.Refusal) (again bool, err error) {
	ch := parseChallenge(r.Challenge)
	if !ch.bearer || r.Status == http.StatusForbidden && ch.err != "insufficient_scope" {
		return false, nil
	}
	if err := c.take(ctx); err != nil {
		return false, err
	}
	defer c.release()
	sent, _ := strings.CutPrefix(r.Sent.Get("Authorization"), "Bearer ")
	switch {
	case c.grant != nil && c.grant.Access != sent:
		return true, nil // another call was refused before, and the token renewed
	case c.Machine:
		err = c.machineLogin(ctx, ch, r.Status == http.StatusForbidden)
	case r.Status == http.StatusForbidden:
		err = c.wantScopes(ctx, sent, ch.scopes)
	case ch.metadata == "" && !c.Store.Has(c.URL):
		c.grant = nil
		err = c.wanting("the server wants a credential and does not say where one logs in" + quoted(r.Said) + ". If you have a key or a token for it, name the variable that holds it with --bearer-env, or set server.headers; if the server has a login")
	default:
		err = c.renew(ctx, sent)
	}
	return err == nil, err
}

// wanting returns the error for a request that a person has to help with.
func (c *Credentials) wanting(why string) error {
	err := fmt.Errorf("%s: run \"attache login %s\"", why, c.Name)
	if !c.warned {
		c.warned = true
		c.Log.Warn("the remote server wants a login", "err", err)
	}
	return err
}

// underLock calls f with the grant as it is on disk. No other process changes it
// meanwhile, and the end of a call does not interrupt f.
func (c *Credentials) underLock(ctx context.Context, f func(context.Context, *Grant) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	if !c.Store.Has(c.URL) {
		c.grant = nil
		return c.wanting("the server wants a login, or a credential (--bearer-env)")
	}
	unlock, err := c.Store.Lock(ctx, c.URL)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := c.Store.Load(c.URL)
	if err != nil {
		return c.wanting(err.Error())
	}
	c.read = true
	if c.stale != "" && g.Access == c.stale && c.grant != nil {
		g = c.grant // which replaced it, and has the only refresh token of use
	}
	return f(ctx, g)
}

// renew puts a token in the place of one that is over or was refused: the one that
// another process has got since, or a new one.
func (c *Credentials) renew(ctx context.Context, old string) error {
	if c.Machine {
		return c.machineToken(ctx)
	}
	return c.underLock(ctx, func(ctx context.Context, g *Grant) error {
		switch {
		case g.Ended != "":
			return c.wanting("the login has ended: " + g.Ended)
		case g.Access != old && !g.expired(time.Now()):
			c.grant = g
			return nil
		case g.Refresh == "":
			return c.wanting("the login has ended, and the authorization server gave nothing to renew it with")
		}
		stored := g.Access
		err := c.refresh(ctx, g)
		switch {
		case c.isEnd(err, g):
			// No process may try the same token again: that may count as theft.
			g.Ended, g.Access, g.Refresh = err.Error(), "", ""
			return c.wanting("the login has ended: " + errors.Join(err, c.Store.Save(g)).Error())
		case err != nil:
			return fmt.Errorf("the login cannot be renewed: %w", err)
		}
		c.keep(g, stored)
		return nil
	})
}

// keep keeps a grant that was renewed. The one in the store has the access token stored. A
// grant that cannot be saved is used all the same: what is in the store is of no use any more.
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

// isEnd reports whether an error says that the grant is of no more use. A client that was
// registered by hand may have a wrong secret for a while.
func (c *Credentials) isEnd(err error, g *Grant) bool {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		return false
	}
	switch refused.code {
	case "invalid_grant":
		return true
	case "invalid_client", "unauthorized_client":
		return g.ClientID != c.ClientID
	}
	return false
}

// refresh gets a new token with the refresh token of the grant.
func (c *Credentials) refresh(ctx context.Context, g *Grant) error {
	params := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "resource": {g.Resource}}
	return c.request(ctx, g, nil, params)
}

// request asks for a token with parameters of our own. The library's own refresh cannot
// name the resource.
func (c *Credentials) request(ctx context.Context, g *Grant, scopes []string, params url.Values) error {
	secret, err := c.clientSecret(g)
	if err != nil {
		return err
	}
	cfg := &clientcredentials.Config{ClientID: g.ClientID, ClientSecret: secret, TokenURL: g.Token, Scopes: scopes, AuthStyle: g.Style, EndpointParams: params}
	token, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, c.Client()))
	if err != nil {
		return tokenError(err)
	}
	return g.take(token, time.Now())
}

// wantScopes notes which scopes a call lacks, so that the next login asks for them too,
// unless there was one since.
func (c *Credentials) wantScopes(ctx context.Context, sent string, scopes []string) error {
	return c.underLock(ctx, func(_ context.Context, g *Grant) error {
		if g.Access != sent && g.Usable(time.Now()) {
			c.grant = g
			return nil
		}
		if len(union(g.Scopes, scopes)) == len(union(g.Scopes)) {
			return errNoUse(scopes)
		}
		g.Wanted = union(g.Wanted, scopes)
		return errors.Join(c.wanting("the server wants more rights for this ("+shown(strings.Join(scopes, " "))+")"), c.Store.Save(g))
	})
}

// errNoUse returns the error for a server that refuses a token for want of scopes that it
// has. Another token would be refused as well.
func errNoUse(scopes []string) error {
	return fmt.Errorf("the server refuses this for want of rights that the token has (%s): ask who runs the server", shown(strings.Join(scopes, " ")))
}

// machineLogin finds who gives tokens for the server, and gets one with the client's own
// secret. more is whether the one before had too few scopes.
func (c *Credentials) machineLogin(ctx context.Context, ch challenge, more bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	a, err := c.discover(ctx, c.Client(), ch, true)
	if err != nil {
		return err
	}
	g := &Grant{URL: c.URL, Resource: a.resource, Issuer: a.Issuer, Token: a.TokenEndpoint, ClientID: c.ClientID, Style: secretStyle(a), Scopes: a.scopes}
	if c.grant != nil && c.grant.Issuer == g.Issuer {
		g.Scopes = union(c.grant.Scopes, a.scopes)
		if more && len(g.Scopes) == len(c.grant.Scopes) {
			return errNoUse(ch.scopes)
		}
	}
	before := c.grant
	c.grant = g
	if err := c.machineToken(ctx); err != nil {
		c.grant = before
		return err
	}
	return nil
}

// machineToken gets a token with the client's own secret.
func (c *Credentials) machineToken(ctx context.Context) error {
	g := *c.grant
	if err := c.request(ctx, &g, g.Scopes, url.Values{"resource": {g.Resource}}); err != nil {
		return fmt.Errorf("the client credentials give no token: %w", err)
	}
	c.grant = &g
	return nil
}
