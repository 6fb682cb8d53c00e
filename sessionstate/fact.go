package sessionstate

import "strings"

// A Source is the origin of a fact. Sources are ordered by trust: a greater Source wins over
// a smaller one.
type Source uint8

// The sources of facts, from the least trusted to the most.
const (
	// None is the source of a fact that is not known.
	None Source = iota
	// Transport is the connection, such as the HTTP session of a front.
	Transport
	// GitRoot is the git root of the working directory.
	GitRoot
	// Roots is the answer of a legacy client to roots/list.
	Roots
	// HostEnvironment is an environment variable set by the host that started the server.
	HostEnvironment
	// InitializeMeta is the _meta of the legacy initialize request.
	InitializeMeta
	// RequestMeta is the _meta of the current request.
	RequestMeta
	// Credential is a verified API key or token.
	Credential
	// Operator is the person who configured attache: flag, environment, session file.
	Operator
)

// String returns the name of s in explanations and audit records.
func (s Source) String() string {
	names := [...]string{
		None: "none", Transport: "transport", GitRoot: "git root", Roots: "roots", HostEnvironment: "host environment",
		InitializeMeta: "initialize _meta", RequestMeta: "request _meta", Credential: "credential", Operator: "operator",
	}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown source"
}

// A Fact is one known value about a session.
type Fact struct {
	// Value is the value; a fact with an empty Value is absent.
	Value  string
	Source Source
	// From names the exact origin for people: "--workspace", "ATTACHE_WORKSPACE",
	// `_meta["io.github.attache-mcp/workspace"]`, or the key id of a credential.
	From string
}

// Empty reports whether the fact is absent.
func (f Fact) Empty() bool { return f.Value == "" }

// Better returns the one of a and b with the more trusted source, or b, the later one, if
// both are equally trusted. An absent fact never wins over a present one.
func Better(a, b Fact) Fact {
	switch {
	case b.Empty():
		return a
	case a.Empty(), b.Source >= a.Source:
		return b
	}
	return a
}

// The trust levels.
const (
	// Direct means that a person is present in the session.
	Direct = "direct"
	// Sandboxed means that no person is present; the session has fewer permissions.
	Sandboxed = "sandboxed"
)

// NormalizeTrust returns the trust level that s names: "direct" for any spelling of direct,
// "" for "", so that the caller's default applies, and "sandboxed" for all other words.
func NormalizeTrust(s string) string {
	switch {
	case s == "":
		return ""
	case strings.EqualFold(strings.TrimSpace(s), Direct):
		return Direct
	}
	return Sandboxed
}
