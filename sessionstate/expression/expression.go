package expression

import (
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"

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
	switch t {
	case Bool:
		return "true or false"
	case Any:
		return "a JSON value"
	}
	return "nothing"
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

// Clear empties the inputs and their cache. It costs less than making new ones.
func (in *Inputs) Clear() {
	in.Context, in.Tool, in.Server = nil, "", ""
	in.Annotations, in.Arguments = nil, nil
	if in.derived.of != nil {
		in.derived = decodedInputs{}
	}
}

// lacks reports whether the fact at path is unknown.
func (in *Inputs) lacks(path string) bool {
	fact, _ := in.Context.Lookup(path)
	return fact.Empty()
}

// A Value is the result of a Program, in the field of its type.
type Value struct {
	Bool bool
	JSON []byte // not to be written to
}

// A Program is a compiled expression. It is safe for use by several goroutines. A nil Program uses
// nothing.
type Program struct {
	source string
	want   Type
	uses   uses
	simple *simpleExpression // if the expression needs no engine
	fixed  *Value            // if the expression depends on no input
	engine *engine           // otherwise
	last   memo

	arguments [][]string // the paths that it reads; an empty path is all arguments
	facts     []string   // the facts that it reads without a test whether they are known
	texts     []string   // its string literals, which may be the computed names in these paths

	guards []guard // conditions that may decide the result without the engine
}

// Compile compiles an expression with a result of type want. The error is an *[Error].
func Compile(src string, want Type) (*Program, error) {
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Line: 1, Column: 1, Problem: "the expression is empty", Remedy: "write " + want.String() + " or leave the key out"}
	}
	if len(src) > maxSource || !utf8.ValidString(src) {
		return nil, &Error{Line: 1, Column: 1, Problem: "the expression is longer than 16 KiB or not UTF-8", Remedy: "write a shorter one"}
	}
	if s := parseSimple(src); s != nil {
		if err := s.check(src, want); err != nil {
			return nil, err
		}
		p := &Program{source: src, want: want, uses: s.uses(), simple: s}
		if path := s.path(); sessionstate.KnownPath(path) {
			p.facts = []string{path}
		}
		return p, nil
	}
	if want == Any {
		if v, ok := parseLiteral(src); ok {
			return &Program{source: src, want: want, fixed: &Value{JSON: v}}, nil
		}
	}
	return compileCEL(src, want)
}

// Eval evaluates the program. After an error the Value is empty. The error is [ErrUnknown] if a
// value other than a condition is made of a fact that is not known, so that nobody takes
// "/" + principal.tenant for a path. A program that tests whether the fact is known, with has() or a
// comparison, gets "" for it.
func (p *Program) Eval(in *Inputs) (Value, error) {
	switch {
	case p.want == Bool:
		holds, err := p.Holds(in)
		return Value{Bool: holds}, err
	case slices.ContainsFunc(p.facts, in.lacks):
		return Value{}, ErrUnknown
	case p.fixed != nil:
		return *p.fixed, nil
	case p.simple != nil:
		return p.simple.eval(in), nil // no slower than the memo
	case !p.readsNoCall():
		return p.engine.eval(in, p.want)
	}
	if v := p.last.get(in); v != nil {
		return *v, nil
	}
	v, err := p.engine.eval(in, p.want)
	if err == nil {
		p.last.put(in, v)
	}
	return v, err
}

// Holds returns the result of a program of type Bool.
func (p *Program) Holds(in *Inputs) (bool, error) {
	switch {
	case p.fixed != nil:
		return p.fixed.Bool, nil
	case !p.readsNoCall():
		return p.decide(in)
	}
	if v := p.last.get(in); v != nil {
		return v.Bool, nil
	}
	holds, err := p.decide(in)
	if err == nil {
		p.last.put(in, Value{Bool: holds})
	}
	return holds, err
}

// decide is Holds without the memo.
func (p *Program) decide(in *Inputs) (bool, error) {
	if p.simple != nil {
		return p.simple.holds(in), nil
	}
	if slices.ContainsFunc(p.guards, func(g guard) bool { return g.fails(in) }) {
		return false, nil
	}
	v, err := p.engine.eval(in, Bool)
	return v.Bool, err
}

// readsNoCall reports whether the program reads nothing of a call, so that its result is the
// same for all calls with the same snapshot of the session.
func (p *Program) readsNoCall() bool { return p.uses&(usesTool|usesAnnotations|usesArguments) == 0 }

// String returns the source.
func (p *Program) String() string { return p.source }

// Type returns the type of the result.
func (p *Program) Type() Type { return p.want }

// Path returns the expression if it is only a path, and "" otherwise. For one of
// [sessionstate.KnownPaths], Lookup returns the source of the value.
func (p *Program) Path() string {
	if p.simple != nil {
		return p.simple.path()
	}
	return ""
}

// NeedsEngine reports whether evaluation needs the CEL engine.
func (p *Program) NeedsEngine() bool { return p != nil && p.engine != nil }

// UsesArguments reports whether the result can depend on the call's arguments.
func (p *Program) UsesArguments() bool { return p.usesAny(usesArguments) }

// ReadsArgument reports whether the program reads the argument at path, a part of it, or an
// object that contains it.
func (p *Program) ReadsArgument(path []string) bool {
	return p != nil && slices.ContainsFunc(p.arguments, func(read []string) bool {
		n := min(len(read), len(path))
		return slices.EqualFunc(read[:n], path[:n], func(a, b string) bool { return a == b || a == element || a == member })
	})
}

// ArgumentNames returns the names of the arguments that the program reads, by depth below
// "arguments". "[]" stands for the elements of a list, which have their own depth. A computed name
// may be any text in the program.
func (p *Program) ArgumentNames() (names [][]string) {
	if p == nil {
		return nil
	}
	for _, path := range p.arguments {
		for depth, name := range path {
			if depth == len(names) {
				names = append(names, nil)
			}
			all := []string{name}
			if name == member {
				all = slices.Concat(p.texts, []string{element})
			}
			for _, name := range all {
				if !slices.Contains(names[depth], name) {
					names[depth] = append(names[depth], name)
				}
			}
		}
	}
	return names
}

// UsesAnnotations reports whether the result can depend on annotations.
func (p *Program) UsesAnnotations() bool { return p.usesAny(usesAnnotations) }

// DependsOnAnnotations reports whether the result for these inputs can differ with the annotations,
// which are not known.
func (p *Program) DependsOnAnnotations(in *Inputs) bool {
	if !p.UsesAnnotations() || slices.ContainsFunc(p.guards, func(g guard) bool { return g.fails(in) }) {
		return false
	}
	unknown := Inputs{Context: in.Context, Tool: in.Tool, Arguments: in.Arguments, Server: in.Server}
	unknown.probe.unknown = true
	result, err := p.engine.run(&unknown)
	return unknown.probe.tested || err == nil && types.IsUnknown(result)
}

// UsesPrincipal reports whether the result can depend on the caller: on the principal, or on the
// session's trust, which a credential can set.
func (p *Program) UsesPrincipal() bool { return p.usesAny(usesPrincipal) }

// ReadsPrincipal reports whether the program reads a field of the principal. Without a principal
// its result has no meaning.
func (p *Program) ReadsPrincipal() bool { return p.usesAny(readsPrincipal) }

// Identified returns [ErrUnidentified] if the result can depend on the caller and the session's
// credential was not identified, because the result would then be that for somebody else. A
// layer that enforces must call it first.
func (p *Program) Identified(c *sessionstate.Context) error {
	if c != nil && c.Unidentified != nil && p.UsesPrincipal() {
		return ErrUnidentified
	}
	return nil
}

// UsesSession reports whether the result can differ between sessions, which includes programs
// that use the principal.
func (p *Program) UsesSession() bool { return p.usesAny(usesSession | usesPrincipal) }

// UsesWorkspace reports whether the result can depend on the path of the workspace.
func (p *Program) UsesWorkspace() bool { return p.usesAny(usesWorkspace) }

func (p *Program) usesAny(inputs uses) bool { return p != nil && p.uses&inputs != 0 }

// uses is a set of inputs.
type uses uint8

const (
	usesSession uses = 1 << iota
	usesPrincipal
	usesTool
	usesAnnotations
	usesArguments
	usesServer
	readsPrincipal
	usesWorkspace
)

// usesOf returns the inputs that a program uses if it reads path.
func usesOf(path string) uses {
	name, field, _ := strings.Cut(path, ".")
	switch name {
	case "session":
		switch field {
		case "", "trust":
			return usesSession | usesPrincipal
		case "workspace.path":
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
	}
	return nil
}

func isTextPath(path string) bool {
	return path == "tool.name" || path == "server.name" || sessionstate.KnownPath(path)
}

func isListPath(path string) bool {
	return path == "principal.roles" || path == "principal.permissions"
}
