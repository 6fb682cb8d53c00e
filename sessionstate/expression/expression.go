package expression

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"

	"cel.dev/cel-go/common/types"

	"github.com/attache-mcp/attache/sessionstate"
)

// A Program is a compiled expression. It is safe for use by several goroutines. A nil Program uses
// nothing.
type Program struct {
	source string
	want   Type
	uses   uses
	simple *simpleExpression // if the expression needs no engine
	fixed  *Value            // if the expression depends on no input
	engine *engine           // otherwise
	last   atomic.Pointer[memo]

	arguments [][]string // the paths that it reads; an empty path is all arguments
	facts     []string   // the facts that it reads without a test whether they are known
	texts     []string   // its string literals, which may be the computed names in these paths

	guards []guard // conditions that may decide the result without the engine; only with an engine
}

// A memo is the last result of a program that reads nothing of a call. Most calls have the same
// immutable snapshot of the session as the previous call, so a comparison of pointers answers them.
type memo struct {
	context *sessionstate.Context
	server  string
	value   Value
}

// Eval evaluates the program. After an error the Value is empty. The error is [ErrUnknown] if a
// value other than a condition is made of a fact that is not known, so that nobody takes
// "/" + principal.tenant for a path. A program that tests whether the fact is known, with has() or a
// comparison, gets "" for it.
func (p *Program) Eval(in *Inputs) (Value, error) {
	switch {
	case p.want == Any && slices.ContainsFunc(p.facts, in.lacks):
		return Value{}, ErrUnknown
	case p.fixed != nil:
		return *p.fixed, nil
	case p.want == Any && p.simple != nil:
		return p.simple.eval(in), nil // no slower than the memo
	case !p.readsNoCall():
		return p.evaluate(in)
	}
	if last := p.last.Load(); last != nil && last.context == in.Context && last.server == in.Server {
		return last.value, nil
	}
	v, err := p.evaluate(in)
	if err == nil {
		p.last.Store(&memo{in.Context, in.Server, v})
	}
	return v, err
}

// Holds returns the result of a program of type Bool.
func (p *Program) Holds(in *Inputs) (bool, error) {
	v, err := p.Eval(in)
	return v.Bool, err
}

// evaluate is Eval without the memo.
func (p *Program) evaluate(in *Inputs) (Value, error) {
	switch {
	case p.simple != nil: // a condition: Eval has returned the other simple programs
		return Value{Bool: p.simple.holds(in)}, nil
	case p.fails(in): // also a condition: no other program has guards
		return Value{Bool: false}, nil
	}
	return p.engine.eval(in, p.want)
}

// fails reports whether one of the guards is certainly false.
func (p *Program) fails(in *Inputs) bool {
	return slices.ContainsFunc(p.guards, func(g guard) bool { return g.fails(in) })
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
// object that contains it. For a program that reads arguments.a.b it is true for the paths a.b,
// a.b.c and a, and false for a.c.
func (p *Program) ReadsArgument(path []string) bool {
	return p != nil && slices.ContainsFunc(p.arguments, func(read []string) bool {
		n := min(len(read), len(path))
		return slices.EqualFunc(read[:n], path[:n], func(a, b string) bool { return a == b || a == element || a == member })
	})
}

// ArgumentNames returns the names of the arguments that the program reads, by depth below
// "arguments". "[]" stands for the elements of a list, which have their own depth. A computed name
// may be any text in the program. The relay needs the names to find frames that a server may read in
// another way than the program (wire.Scanner.ArgumentNames). Examples:
//
//	arguments.a.b == "x"                        [[a] [b]]
//	arguments.items.exists(i, i.path == "x")    [[items] [[]] [path]]
//	arguments.all(name, name != "force")        [[force []]]
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
// which are not known. CEL evaluates with unknown values: the result is unknown only if no other
// operand decides it. With a session that is sandboxed,
//
//	session.trust == "direct" && tool.annotations.readOnlyHint
//
// is false whatever the annotations are. Without this, the defaults of the annotations would decide
// the first calls of a client that does not list the tools.
func (p *Program) DependsOnAnnotations(in *Inputs) bool {
	if !p.UsesAnnotations() || p.fails(in) {
		return false
	}
	// Other Inputs, because the cache of in is made for known annotations, and is used after this.
	unknown := Inputs{Context: in.Context, Tool: in.Tool, Arguments: in.Arguments, Server: in.Server}
	unknown.probe.unknown = true
	// A program that reads annotations has an engine: it is neither simple nor fixed.
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

// A guard is an operand of && at the top level of a condition that can be evaluated without
// decoding the arguments: it depends only on the session, or tests whether an argument exists.
// If a guard is false, the condition is false, even if another operand is an error (CEL, logical
// operators).
type guard struct {
	program *Program // reads nothing of a call; nil if member is set
	member  string   // an argument that has() tests for
}

// fails reports whether the guard is certainly false.
func (g *guard) fails(in *Inputs) bool {
	if g.program == nil {
		return lacks(in.Arguments, g.member)
	}
	value, err := g.program.Holds(in)
	return err == nil && !value
}

// lacks reports whether an object certainly has no member called name, because its text contains
// neither the name nor a \u escape. A name with a slash (in backticks in the expression) could
// also be escaped differently. For the name path:
//
//	{"file":"a"}            true
//	{"file":"a path"}       false: the text is searched, not parsed
//	{"p\u0061th":"a"}       false
//	["a"]                   false: the engine returns the error
func lacks(object []byte, name string) bool {
	return len(object) == 0 || object[0] == '{' && strings.IndexByte(name, '/') < 0 &&
		!bytes.Contains(object, []byte(name)) && !bytes.Contains(object, []byte(`\u`))
}
