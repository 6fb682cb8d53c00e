package sessionstate

// Lookup returns the fact at path, one of [KnownPaths]. The bool says whether
// there is such a path; a known path whose fact is absent gives an empty Fact and
// true. It does not allocate.
//
// Facts of the principal have the source [Credential] and the key's id in From.
// "session.trust" is the better of the session's own and the principal's.
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
		trust := Better(p.fact(p.Trust), c.Trust)
		trust.Value = NormalizeTrust(trust.Value)
		return trust, true
	case "session.conversation":
		return c.Conversation, true
	case "principal.user":
		return p.fact(p.User), true
	case "principal.tenant":
		return p.fact(p.Tenant), true
	case "principal.email":
		return p.fact(p.Email), true
	case "principal.plan":
		return p.fact(p.Plan), true
	case "principal.scope":
		return p.fact(p.Scope), true
	}
	return Fact{}, false
}

// fact is a value of the principal's as a Fact, empty if the value is.
func (p *Principal) fact(value string) Fact {
	if value == "" {
		return Fact{}
	}
	return Fact{Value: value, Source: Credential, From: p.KeyID}
}

// KnownPath reports whether Lookup knows path. Configuration is checked with it.
func KnownPath(path string) bool {
	_, known := (*Context)(nil).Lookup(path)
	return known
}

// KnownPaths returns the paths that Lookup knows, in the order in which people
// are told of them. The slice is the caller's.
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
