package sessionstate

import "strings"

// ContextKey is the key under which a call of the proxy carries its *[Context].
type ContextKey struct{}

// ContextOf returns the Context that a call carries, nil if it carries none.
func ContextOf(call interface{ Value(key any) any }) *Context {
	c, _ := call.Value(ContextKey{}).(*Context)
	return c
}

// A Context is what is known of a session at one moment. It is shared by pointer
// between goroutines and never changes: use the With methods, which return the
// same pointer where nothing changes and a changed copy otherwise. A nil *Context
// reads as one in which nothing is known.
type Context struct {
	// Session is the session key.
	Session Fact
	// Conversation is the key the host gave the conversation, if any.
	Conversation Fact
	// Workspace is the path of the workspace.
	Workspace Fact
	// WorkspaceID is the durable id of the workspace, where there is one.
	WorkspaceID Fact
	// Trust is the level of trust, from the operator or a credential. Read it
	// by Lookup("session.trust"), which weighs the principal's in.
	Trust Fact
	// Principal is who the credential turned out to be, nil without one.
	Principal *Principal
	// Unidentified is why a credential of the session could not be turned into a
	// principal; nil if it could, or if there is none. What depends on the
	// principal is then to be decided as for somebody nobody knows.
	Unidentified error
	// Protocol is the revision in use, such as "2025-06-18"; empty before it is
	// known.
	Protocol string
	// Modern says that the connection has no handshake (2026-07-28 and later).
	Modern bool
}

// With returns a copy of c that edit has changed. It always copies; for single
// facts the other With methods do not where nothing changes.
func (c *Context) With(edit func(*Context)) *Context {
	var next Context
	if c != nil {
		next = *c
	}
	edit(&next)
	return &next
}

// WithSession returns a context with f as the session key if it is the better one.
func (c *Context) WithSession(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.Session }, f)
}

// WithConversation returns a context with f as the conversation if it is the
// better one.
func (c *Context) WithConversation(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.Conversation }, f)
}

// WithWorkspace returns a context with f as the workspace's path if it is the
// better one.
func (c *Context) WithWorkspace(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.Workspace }, f)
}

// WithWorkspaceID returns a context with f as the workspace's id if it is the
// better one.
func (c *Context) WithWorkspaceID(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.WorkspaceID }, f)
}

// WithTrust returns a context with f as the level of trust if it is the better
// one. Trust decides access, so a fact from a source below [Credential] is
// ignored. The level is normalised.
func (c *Context) WithTrust(f Fact) *Context {
	if f.Source < Credential {
		f = Fact{}
	}
	f.Value = NormalizeTrust(f.Value)
	return c.withFact(func(c *Context) *Fact { return &c.Trust }, f)
}

// WithPrincipal returns a context with p as its principal; nil takes it away.
func (c *Context) WithPrincipal(p *Principal) *Context {
	if c != nil && c.Principal == p {
		return c
	}
	return c.With(func(c *Context) { c.Principal = p })
}

// withFact does not copy unless f changes something: on the path of a message
// nearly every fact is known already. The strings of a new fact are copied
// because they are often slices of a frame, which would be kept in memory whole.
func (c *Context) withFact(field func(*Context) *Fact, f Fact) *Context {
	if c == nil {
		c = new(Context)
	}
	old := *field(c)
	if Better(old, f) == old {
		return c
	}
	f.Value, f.From = strings.Clone(f.Value), strings.Clone(f.From)
	next := *c
	*field(&next) = f
	return &next
}

// size returns how many bytes the texts of c take, and about what its principal does. Each
// session may have a principal of its own.
func (c *Context) size() int {
	n := 0
	for _, f := range []*Fact{&c.Session, &c.Conversation, &c.Workspace, &c.WorkspaceID, &c.Trust} {
		n += len(f.Value) + len(f.From)
	}
	n += len(c.Protocol)
	if p := c.Principal; p != nil {
		n += len(p.KeyID) + len(p.User) + len(p.Tenant) + len(p.Email) + len(p.Plan) + len(p.Scope) + len(p.Trust)
		for _, words := range [][]string{p.Roles, p.Permissions} {
			for _, word := range words {
				n += len(word) + 16 // and its header
			}
		}
	}
	return n
}
