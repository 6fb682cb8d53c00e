package sessionstate

import "cmp"

// facts are what [Context.Lookup] knows, in the order in which errors list them.
var facts = [...]struct {
	path string
	of   func(c *Context, p *Principal) Fact
}{
	{"session.id", func(c *Context, _ *Principal) Fact { return c.Session }},
	{"session.workspace.path", func(c *Context, _ *Principal) Fact { return c.Workspace }},
	{"session.workspace.id", func(c *Context, _ *Principal) Fact { return c.WorkspaceID }},
	{"session.trust", (*Context).trust},
	{"session.conversation", func(c *Context, _ *Principal) Fact { return c.Conversation }},
	{"principal.user", func(_ *Context, p *Principal) Fact { return p.fact("user", p.User) }},
	{"principal.tenant", func(_ *Context, p *Principal) Fact { return p.fact("tenant", p.Tenant) }},
	{"principal.email", func(_ *Context, p *Principal) Fact { return p.fact("email", p.Email) }},
	{"principal.plan", func(_ *Context, p *Principal) Fact { return p.fact("plan", p.Plan) }},
	{"principal.scope", func(_ *Context, p *Principal) Fact { return p.fact("scope", p.Scope) }},
}

// nothing and nobody are read in the place of a nil Context or Principal.
var (
	nothing Context
	nobody  Principal
)

// Lookup returns the fact at path, one of [KnownPaths]. The bool says whether
// there is such a path; a known path whose fact is absent gives an empty Fact and
// true. It does not allocate.
//
// Facts of the principal have the source [Credential] and the key's id in From,
// or [Operator] where the operator gave them. "session.trust" is the better of the
// session's own and the principal's; while the session is unidentified, and the
// operator has not said otherwise, it is [Sandboxed].
func (c *Context) Lookup(path string) (Fact, bool) {
	c = cmp.Or(c, &nothing)
	for i := range facts {
		if facts[i].path == path {
			return facts[i].of(c, cmp.Or(c.Principal, &nobody)), true
		}
	}
	return Fact{}, false
}

// trust is the level that holds for a session of p.
func (c *Context) trust(p *Principal) Fact {
	trust := Better(p.fact("trust", p.Trust), c.Trust)
	trust.Value = NormalizeTrust(trust.Value)
	if c.Unidentified != nil && trust.Source < Operator {
		// The credential may have been one that is held on the short leash.
		return Fact{Value: Sandboxed, Source: None, From: "nobody could be identified"}
	}
	return trust
}

// KnownPath reports whether [Context.Lookup] knows path. The configuration is checked with it.
func KnownPath(path string) bool {
	_, known := (*Context)(nil).Lookup(path)
	return known
}

// KnownPaths returns the paths that [Context.Lookup] knows, in the order in which errors list
// them. The caller may change the slice.
func KnownPaths() (paths []string) {
	for _, f := range facts {
		paths = append(paths, f.path)
	}
	return paths
}
