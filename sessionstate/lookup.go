package sessionstate

// Lookup returns the fact at path, one of [KnownPaths]. The bool says whether
// there is such a path; a known path whose fact is absent gives an empty Fact and
// true. It does not allocate.
//
// Facts of the principal have the source [Credential] and the key's id in From,
// or [Operator] where the operator gave them. "session.trust" is the better of the
// session's own and the principal's; while the session is unidentified, and the
// operator has not said otherwise, it is [Sandboxed].
func (c *Context) Lookup(path string) (Fact, bool) {
	var empty Context
	if c == nil {
		c = &empty
	}
	p := c.Principal
	if p == nil {
		p = &Principal{}
	}
	switch path {
	case "session.id":
		return c.Session, true
	case "session.workspace.path":
		return c.Workspace, true
	case "session.workspace.id":
		return c.WorkspaceID, true
	case "session.trust":
		return c.trust(p), true
	case "session.conversation":
		return c.Conversation, true
	case "principal.user":
		return p.fact("user", p.User), true
	case "principal.tenant":
		return p.fact("tenant", p.Tenant), true
	case "principal.email":
		return p.fact("email", p.Email), true
	case "principal.plan":
		return p.fact("plan", p.Plan), true
	case "principal.scope":
		return p.fact("scope", p.Scope), true
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
func KnownPaths() []string {
	return []string{
		"session.id",
		"session.workspace.path",
		"session.workspace.id",
		"session.trust",
		"session.conversation",
		"principal.user",
		"principal.tenant",
		"principal.email",
		"principal.plan",
		"principal.scope",
	}
}
