package expression

import (
	"strings"

	"github.com/attache-mcp/attache/sessionstate"
)

// A Type is the type of an expression's result.
type Type uint8

// The types of results.
const (
	Bool Type = iota + 1 // a condition
	Any                  // any JSON value
)

func (t Type) String() string {
	if t == Bool {
		return "true or false"
	}
	return "a JSON value"
}

// Inputs are the inputs of an expression. Each is optional: an unknown fact is empty.
//
// Inputs cache decoded JSON, so that all rules of a call decode it at most once. So use Inputs for
// only one call and in one goroutine; make new ones for another call, or Clear them. The bytes
// and strings need to be valid only during Eval.
type Inputs struct {
	Context *sessionstate.Context
	// Tool is the server's name of the tool.
	Tool string
	// Annotations is the object "annotations" of the tool in tools/list.
	Annotations []byte
	// Arguments is the object "arguments" of the call. It must be valid JSON without duplicate
	// members.
	Arguments []byte
	// Server is the server's name.
	Server string

	derived decodedInputs
	probe   annotationProbe
}

// Clear empties the inputs and their cache. It costs less than making new ones, because the cache is
// empty already if no program used the engine.
func (in *Inputs) Clear() {
	in.Context, in.Tool, in.Server = nil, "", ""
	in.Annotations, in.Arguments = nil, nil
	if in.derived.of != nil {
		in.derived = decodedInputs{}
	}
}

// A Value is the result of a Program, in the field of its type.
type Value struct {
	Bool bool
	JSON []byte // not to be written to
}

// lacks reports whether the fact at path is not known.
func (in *Inputs) lacks(path string) bool {
	fact, _ := in.Context.Lookup(path)
	return fact.Empty()
}

// text returns the string at path, "" if it is unknown.
func (in *Inputs) text(path string) string {
	switch path {
	case "tool.name":
		return in.Tool
	case "server.name":
		return in.Server
	}
	fact, _ := in.Context.Lookup(path)
	return fact.Value
}

// list returns the list of strings at path, nil if it is unknown.
func (in *Inputs) list(path string) []string {
	if in.Context == nil || in.Context.Principal == nil {
		return nil
	}
	switch path {
	case "principal.roles":
		return in.Context.Principal.Roles
	case "principal.permissions":
		return in.Context.Principal.Permissions
	default:
		return nil
	}
}

func isTextPath(path string) bool {
	return path == "tool.name" || path == "server.name" || sessionstate.KnownPath(path)
}

func isListPath(path string) bool {
	return path == "principal.roles" || path == "principal.permissions"
}

// uses is a set of inputs.
type uses uint8

const (
	usesSession uses = 1 << iota
	// usesPrincipal is set for principal and also for session.trust, which a credential can set.
	usesPrincipal
	usesTool
	usesAnnotations
	usesArguments
	usesServer
	// readsPrincipal is set for principal only.
	readsPrincipal
	// usesWorkspace is set for the path of the workspace, for which calls may have to wait: attache asks
	// the client for its roots.
	usesWorkspace
)

// usesOf returns the inputs that a program uses if it reads path.
func usesOf(path string) uses {
	name, field, _ := strings.Cut(path, ".")
	switch name {
	case "session":
		switch field {
		case "": // the whole session, as in [session].exists(s, s.trust == "direct")
			return usesSession | usesPrincipal | usesWorkspace
		case "trust":
			return usesSession | usesPrincipal
		case "workspace", "workspace.path": // "workspace": has(session.workspace)
			return usesSession | usesWorkspace
		}
		return usesSession
	case "principal":
		return usesPrincipal | readsPrincipal
	case "tool":
		if field == "name" {
			return usesTool
		}
		return usesTool | usesAnnotations
	case "arguments":
		return usesArguments
	case "server":
		return usesServer
	}
	return 0
}
