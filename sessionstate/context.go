package sessionstate

import "strings"

// ContextKey is the key under which a call of the proxy carries its *[Context].
type ContextKey struct{}

// ContextOf returns the Context that a call carries, nil if it carries none.
func ContextOf(call interface{ Value(key any) any }) *Context {
	c, _ := call.Value(ContextKey{}).(*Context)
	return c
}

// A Context is a snapshot of the facts about a session. Goroutines share it by pointer, so it
// never changes: the With methods return a changed copy, or the same pointer if nothing
// changes. A nil *Context is an empty one.
type Context struct {
	// Session is the session key.
	Session Fact
	// Conversation is the key that the host gave the conversation, if any.
	Conversation Fact
	// Workspace is the path of the workspace.
	Workspace Fact
	// Moved is the directory in which the client makes a call, if it has left Workspace during the
	// session. Lookup returns it as the path of the workspace. Briefing and teams use Workspace.
	Moved Fact
	// WorkspaceID is the durable id of the workspace, if it has one.
	WorkspaceID Fact
	// Trust is the trust level from the operator. Read it with Lookup("session.trust"), which
	// normalises it and also considers the principal's level.
	Trust Fact
	// Principal is the owner of the session's credential, nil without a credential.
	Principal *Principal
	// Unidentified is the reason why the session's credential has no principal. It is nil if
	// the credential was identified or if there is none. If it is not nil, do not treat the
	// session like one without a credential: refuse what depends on the principal.
	Unidentified error
	// Protocol is the negotiated revision, such as "2025-06-18"; empty before the handshake.
	Protocol string
	// Modern reports whether the connection has no handshake (2026-07-28 and later).
	Modern bool
}

// With returns a copy of c changed by edit. Unlike the other With methods it always copies.
func (c *Context) With(edit func(*Context)) *Context {
	var next Context
	if c != nil {
		next = *c
	}
	edit(&next)
	return &next
}

// WithSession returns a context with f as the session key if f is [Better].
func (c *Context) WithSession(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.Session }, f)
}

// WithConversation returns a context with f as the conversation if f is [Better].
func (c *Context) WithConversation(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.Conversation }, f)
}

// WithWorkspace returns a context with f as the workspace's path if f is [Better]. A slash at the end
// of the path, as shells complete it, is left out: rules join paths to it. The letter of a Windows drive
// becomes a capital one.
func (c *Context) WithWorkspace(f Fact) *Context {
	f.Value = withCapitalDrive(withoutSlash(f.Value))
	return c.withFact(func(c *Context) *Fact { return &c.Workspace }, f)
}

// withoutSlash returns a path without slashes at its end. The root of a file system, and a URL, stay
// as they are.
func withoutSlash(path string) string {
	slashes := "/"
	if len(path) > 1 && path[1] == ':' { // of Windows
		slashes = `/\`
	}
	short := strings.TrimRight(path, slashes)
	if short == "" || strings.HasSuffix(short, ":") || strings.Contains(path, "://") {
		return path
	}
	return short
}

// withCapitalDrive returns a Windows path with a capital letter for its drive. Extensions of VS Code get
// paths with a small one and start programs with it (microsoft/vscode issue 68325), terminals show a
// capital one, and the policies and the other sessions of a workspace are found by its path.
func withCapitalDrive(path string) string {
	if len(path) > 2 && 'a' <= path[0] && path[0] <= 'z' && path[1] == ':' && (path[2] == '/' || path[2] == '\\') {
		return strings.ToUpper(path[:1]) + path[1:]
	}
	return path
}

// WithWorkspaceID returns a context with f as the workspace's id if f is [Better].
func (c *Context) WithWorkspaceID(f Fact) *Context {
	return c.withFact(func(c *Context) *Fact { return &c.WorkspaceID }, f)
}

// WithPrincipal returns a context with p as its principal; nil removes it.
func (c *Context) WithPrincipal(p *Principal) *Context {
	if c != nil && c.Principal == p {
		return c
	}
	return c.With(func(c *Context) { c.Principal = p })
}

// withFact copies c only if f changes it: on the path of a message nearly every fact is known
// already. It clones the strings of a new fact, because they are often slices of a frame and
// would keep the whole frame in memory.
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

// size returns the approximate number of bytes in the strings of c and its principal.
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
				n += len(word) + 16 // with the string header
			}
		}
	}
	return n
}
