package sessionstate

import "cmp"

// facts are the facts that [Context.Lookup] returns, in the order in which errors list them.
var facts = [...]struct {
	path string
	of   func(c *Context, p *Principal) Fact
}{
	{"session.id", func(c *Context, _ *Principal) Fact { return c.Session }},
	{"session.workspace.path", func(c *Context, _ *Principal) Fact { return cmp.Or(c.Moved, c.Workspace) }},
	{"session.workspace.id", func(c *Context, _ *Principal) Fact { return c.WorkspaceID }},
	{"session.trust", (*Context).trust},
	{"session.conversation", func(c *Context, _ *Principal) Fact { return c.Conversation }},
	{"principal.user", func(_ *Context, p *Principal) Fact { return p.fact("user", p.User) }},
	{"principal.tenant", func(_ *Context, p *Principal) Fact { return p.fact("tenant", p.Tenant) }},
	{"principal.email", func(_ *Context, p *Principal) Fact { return p.fact("email", p.Email) }},
	{"principal.plan", func(_ *Context, p *Principal) Fact { return p.fact("plan", p.Plan) }},
	{"principal.scope", func(_ *Context, p *Principal) Fact { return p.fact("scope", p.Scope) }},
}

// Lookup uses these in place of a nil Context or Principal.
var (
	emptyContext   Context
	emptyPrincipal Principal
)

// Lookup returns the fact at path, and whether path is one of [KnownPaths]. For a known path
// whose fact is absent it returns an empty Fact and true. It does not allocate.
//
// Facts of the principal have the source [Credential] and the key's id in From, or the source
// [Operator] if the operator asserted them. "session.trust" is the [Better] of the session's
// and the principal's level. It is [Sandboxed] while the session is unidentified, unless the
// operator has set it.
func (c *Context) Lookup(path string) (Fact, bool) {
	c = cmp.Or(c, &emptyContext)
	for i := range facts {
		if facts[i].path == path {
			return facts[i].of(c, cmp.Or(c.Principal, &emptyPrincipal)), true
		}
	}
	return Fact{}, false
}

// trust returns the effective trust level of a session of p.
func (c *Context) trust(p *Principal) Fact {
	trust := Better(p.fact("trust", p.Trust), c.Trust)
	trust.Value = NormalizeTrust(trust.Value)
	if c.Unidentified != nil && trust.Source < Operator {
		// The principal of the credential may have been a sandboxed one.
		return Fact{Value: Sandboxed, Source: None, From: "nobody could be identified"}
	}
	return trust
}

// KnownPath reports whether path is one of [KnownPaths].
func KnownPath(path string) bool {
	_, known := (*Context)(nil).Lookup(path)
	return known
}

// KnownPaths returns the paths that [Context.Lookup] accepts, in the order in which errors list
// them. The caller may change the slice.
func KnownPaths() (paths []string) {
	for _, f := range facts {
		paths = append(paths, f.path)
	}
	return paths
}
