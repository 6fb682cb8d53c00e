package sessionstate

import "strings"

// A Source says where a fact came from. The order is the order of trust: a
// greater Source wins over a smaller one.
type Source uint8

// The sources of facts, from the least trusted to the most.
const (
	// None is the source of a fact that is not known.
	None Source = iota
	// Transport is what carries the messages: the session of a front.
	Transport
	// GitRoot is the git root of the working directory.
	GitRoot
	// Roots is the answer of a legacy client to roots/list.
	Roots
	// HostEnvironment is a variable the host gave the server it started.
	HostEnvironment
	// InitializeMeta is the _meta of the legacy initialize request.
	InitializeMeta
	// RequestMeta is the _meta of the request at hand.
	RequestMeta
	// Credential is an API key or token that was verified.
	Credential
	// Operator is the person who configured attache: flag, environment, session file.
	Operator
)

// String returns the words for s that people read in explanations and audits.
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

// A Fact is one value that is known of a session.
type Fact struct {
	// Value is the fact itself; an empty one counts as absent.
	Value string
	// Source says how far the value is to be trusted.
	Source Source
	// From names the exact place in words a person can look up: "--workspace",
	// "ATTACHE_WORKSPACE", `_meta["io.github.attache-mcp/workspace"]`, or the id
	// of the key for a fact from a credential.
	From string
}

// Empty reports whether the fact is absent.
func (f Fact) Empty() bool { return f.Value == "" }

// String returns the value with its source, for explanations.
func (f Fact) String() string {
	if f.Empty() {
		return "(absent)"
	}
	if f.From == "" {
		return f.Value + " (" + f.Source.String() + ")"
	}
	return f.Value + " (" + f.Source.String() + ": " + f.From + ")"
}

// Better returns the fact that holds when both are known: the one of higher
// trust, or b if they are equally trusted, for it came later. An absent fact
// never wins over a present one, whatever its source.
func Better(a, b Fact) Fact {
	switch {
	case b.Empty():
		return a
	case a.Empty(), b.Source >= a.Source:
		return b
	}
	return a
}

// The two levels of trust there are.
const (
	// Direct means that a person is present in the session.
	Direct = "direct"
	// Sandboxed means that nobody is present, and the session gets less than a direct one.
	Sandboxed = "sandboxed"
)

// NormalizeTrust returns the level that s means, "direct" or "sandboxed". A word
// it does not know means sandboxed. An empty s stays empty: the caller's default
// applies.
func NormalizeTrust(s string) string {
	switch {
	case s == "":
		return ""
	case strings.EqualFold(strings.TrimSpace(s), Direct):
		return Direct
	}
	return Sandboxed
}
