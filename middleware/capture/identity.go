package capture

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// identified remembers which credential each session came with, and who it
// turned out to be. Sessions that came with none are the operator's.
type identified struct {
	mu    sync.Mutex
	known map[string]*identity // by session key; bounded by maxIdentities
}

// maxIdentities bounds the table: credentials in _meta are the client's to vary.
const maxIdentities = 10_000

type identity struct {
	credential string
	sum        [32]byte
	at         time.Time // when it was last looked up
	err        error     // the last failure, which is told once
	principal  *sessionstate.Principal
}

// identify returns s's context with the principal of its credential, looked up
// afresh when it has been held long enough.
func (c *Capture) identify(ctx context.Context, s *sessionstate.Session, f facts) *sessionstate.Context {
	if f.hasCredential && !c.o.MetaCredential {
		c.who.mu.Lock()
		first := c.who.known[""] == nil
		c.who.known[""] = &identity{}
		c.who.mu.Unlock()
		if first {
			c.o.Log.Warn("an API key in _meta was cut out and not used; set identity.meta_api_key to accept it")
		}
		f.credential = ""
	}
	if c.o.Identify == nil || c.o.Credential == "" && !c.o.MetaCredential {
		return s.Context()
	}
	id := c.identityOf(s.Key(), f)
	if id == nil {
		return s.Context()
	}
	if now := c.o.Now(); id.at.IsZero() || now.Sub(id.at) >= c.o.Recheck {
		id.at = now
		c.lookUp(ctx, id)
	}
	if now := s.Context(); now.Principal == id.principal && now.Unidentified == id.err {
		return now
	}
	return s.Update(func(old *sessionstate.Context) *sessionstate.Context {
		return old.With(func(ctx *sessionstate.Context) { ctx.Principal, ctx.Unidentified = id.principal, id.err })
	})
}

// LookupFailed returns why the credential behind a view could not be turned into
// a principal; nil if it could, or if there is none. For a layer that decides by
// the principal and has to refuse what it cannot decide.
func (c *Capture) LookupFailed(view *sessionstate.Context) error {
	if view == nil {
		return nil
	}
	return view.Unidentified
}

// identityOf returns the identity of a session. A credential in _meta is the
// session's until another one comes; the operator's precedes it.
func (c *Capture) identityOf(session string, f facts) *identity {
	credential := c.o.Credential
	if credential == "" {
		credential = f.credential
	}
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	id := c.who.known[session]
	if credential == "" {
		return id
	}
	sum := sha256.Sum256([]byte(credential))
	if id == nil || id.sum != sum {
		if len(c.who.known) >= maxIdentities {
			clear(c.who.known)
		}
		id = &identity{credential: credential, sum: sum}
		c.who.known[session] = id
	}
	return id
}

// lookUp asks who a credential is. A principal that can no longer be confirmed
// is no principal; the tools go on working.
func (c *Capture) lookUp(ctx context.Context, id *identity) {
	p, err := c.o.Identify(ctx, id.credential)
	if err == nil {
		id.err = nil
		if id.principal == nil || !same(id.principal, p) {
			id.principal = p
		}
		return
	}
	id.principal = nil
	if id.err == nil || id.err.Error() != err.Error() {
		id.err = err
		c.o.Log.Warn("nobody could be identified; calls go on without a principal", "err", err)
	}
}

func same(a, b *sessionstate.Principal) bool {
	return b != nil && a.KeyID == b.KeyID && a.User == b.User && a.Tenant == b.Tenant && a.Email == b.Email &&
		a.Plan == b.Plan && a.Scope == b.Scope && a.Trust == b.Trust &&
		equal(a.Roles, b.Roles) && equal(a.Permissions, b.Permissions)
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Credential returns the credential of a session, "" if it has none: for a
// policy source that asks on the session's behalf.
func (c *Capture) Credential(session string) string {
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	if id := c.who.known[session]; id != nil {
		return id.credential
	}
	return c.o.Credential
}
