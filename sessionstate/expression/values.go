package expression

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/attache-mcp/attache/sessionstate"
)

// CEL parses the macros all, exists, filter and map as comprehensions. For r.exists(i, C) that is
//
//	range r, variable i, result = false
//	condition: !result
//	step: result = result || C
//
// filter and map have a list as the result, to which a step adds an element.

// loopOver returns the id of the range of the loop that defines the identifier e, or 0 if e is
// not the variable of a loop. A loop defines its variable for its condition and step, but not for its
// range: in r.exists(i, i.list.exists(i, C)), the i of i.list is the variable of the outer loop.
func loopOver(e ast.NavigableExpr) int64 {
	for inner := e; ; {
		outer, ok := inner.Parent()
		if !ok {
			return 0
		}
		if outer.Kind() == ast.ComprehensionKind {
			loop, part := outer.AsComprehension(), inner.ID()
			named := e.AsIdent() == loop.IterVar() || e.AsIdent() == loop.IterVar2()
			if named && (part == loop.LoopCondition().ID() || part == loop.LoopStep().ID()) {
				return loop.IterRange().ID()
			}
		}
		inner = outer
	}
}

// element stands in a path for all elements of a list, and member for members with computed names.
const (
	element = "[]"
	member  = "{}"
)

// A value is what an expression may stand for: the input at a path, such as arguments.path. Examples:
//
//	arguments.a["b"], "b" in arguments.a    path arguments a b
//	arguments.list[0].a                     path arguments list [] a
//	arguments[arguments.name]               path arguments {}
//	i, in arguments.list.exists(i, C)       path arguments list []
//	[session.trust]                         path session trust, elements 1
type value struct {
	path     []string
	elements int // more than 0: a list or an object whose elements have the path; they may be lists again
}

// ofElements returns what the variable of a loop over v stands for.
func (v value) ofElements() value {
	switch {
	case v.elements > 0:
		return value{v.path, v.elements - 1}
	case len(v.path) == 1:
		return v.below(member) // a loop over an input, not over a part of it, is over the names of its members
	}
	return v.below(element)
}

// below returns what the member name of v stands for.
func (v value) below(name string) value {
	if v.elements > 0 {
		return value{v.path, v.elements - 1}
	}
	return value{path: slices.Concat(v.path, []string{name})}
}

// values maps the id of an expression to what it may stand for. An expression that is used for a member has none:
// otherwise arguments.path would also count as a use of all arguments. If an expression may stand for one of two
// values, both are recorded. With a value too few, a frame could pass in which the server reads another argument
// than the rule.
type values map[int64][]value

// add records that e may stand for each of all.
func (v values) add(e ast.Expr, all ...value) {
	for _, one := range all {
		same := func(o value) bool { return o.elements == one.elements && slices.Equal(o.path, one.path) }
		if !slices.ContainsFunc(v[e.ID()], same) {
			v[e.ID()] = append(v[e.ID()], one)
		}
	}
}

// field records that e is the member name of operand, which then has no values.
func (v values) field(e, operand ast.Expr, name string) {
	of := v[operand.ID()]
	delete(v, operand.ID())
	for _, one := range of {
		v.add(e, one.below(name))
	}
}

// element records that one is an element of the list or object e.
func (v values) element(e, one ast.Expr) {
	for _, of := range v[one.ID()] {
		v.add(e, value{of.path, of.elements + 1})
	}
}

// expr records what e may stand for. The operands of e must be recorded before, and the range of a loop before its
// step. PostOrderVisit has this order.
func (v values) expr(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		over := loopOver(e.(ast.NavigableExpr))
		if over == 0 {
			v.add(e, value{path: []string{e.AsIdent()}})
		}
		for _, one := range v[over] {
			v.add(e, one.ofElements())
		}
	case ast.SelectKind:
		v.field(e, e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.ListKind:
		for _, one := range e.AsList().Elements() {
			v.element(e, one)
		}
	case ast.MapKind:
		for _, one := range e.AsMap().Entries() {
			v.element(e, one.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		v.add(e, v[e.AsComprehension().LoopStep().ID()]...)
	case ast.CallKind:
		v.call(e)
	}
}

// call records a field that is read by x["name"] or "name" in x, and what combines values.
func (v values) call(e ast.Expr) {
	args := e.AsCall().Args()
	switch name := e.AsCall().FunctionName(); {
	case name == operators.In:
		v.index(e, args[1], args[0])
	case name == operators.Index:
		v.index(e, args[0], args[1])
	case combines(e):
		if name == operators.Conditional {
			args = args[1:]
		}
		for _, arg := range args {
			v.add(e, v[arg.ID()]...)
		}
	}
}

// isPath reports whether e is an input or a field of an input. The variable of a loop is not an input: it may stand
// for a text that was made from one.
func isPath(e ast.Expr) bool {
	for e.Kind() == ast.SelectKind {
		e = e.AsSelect().Operand()
	}
	return e.Kind() == ast.IdentKind && loopOver(e.(ast.NavigableExpr)) == 0
}

// combines reports whether e is a call that returns one of its arguments, or a list of their elements.
func combines(e ast.Expr) bool {
	name := e.AsCall().FunctionName()
	return name == operators.Conditional || name == operators.Add || name == overloads.TypeConvertDyn
}

// index records that e is of[key], a member of an object or an element of a list.
func (v values) index(e, of, key ast.Expr) {
	switch name := key.AsLiteral().(type) {
	case types.String:
		v.field(e, of, string(name))
	case nil: // the key is computed
		v.field(e, of, member)
	default: // a number
		v.field(e, of, element)
	}
}

// analyse sets what p uses and reads: inputs, arguments, string literals, and facts except those that
// it tests with has() or a comparison. It reports whether evaluation needs limits, because p has a loop
// or matches a pattern. Of these two, only the first has session.workspace.path among its facts:
//
//	session.workspace.path + "/src"
//	has(session.workspace) ? session.workspace.path : "/"
func (p *Program) analyse(checked *ast.AST) (loops bool) {
	read, tests := values{}, map[int64]bool{}
	ast.PostOrderVisit(ast.NavigateAST(checked), ast.NewExprVisitor(func(e ast.Expr) {
		read.expr(e)
		switch e.Kind() {
		case ast.LiteralKind:
			if text, ok := e.AsLiteral().(types.String); ok && text != "" {
				p.texts = append(p.texts, string(text))
			}
		case ast.SelectKind:
			tests[e.ID()] = e.AsSelect().IsTestOnly()
		case ast.ComprehensionKind:
			loops = true
		case ast.CallKind:
			loops = loops || e.AsCall().FunctionName() == "matches"
			switch e.AsCall().FunctionName() {
			case operators.Equals, operators.NotEquals, operators.In:
				for _, side := range e.AsCall().Args() {
					tests[side.ID()] = isPath(side)
				}
			}
		}
	}))
	var tested []string
	for id, all := range read {
		for _, one := range all {
			path := strings.Join(one.path, ".")
			p.uses |= usesOf(path)
			if tests[id] {
				tested = append(tested, path+".")
			} else if sessionstate.KnownPath(path) {
				p.facts = append(p.facts, path)
			}
			if one.path[0] == "arguments" {
				p.arguments = append(p.arguments, one.path[1:])
			}
		}
	}
	// A test of an object, such as has(session.workspace), also tests its fields.
	p.facts = slices.DeleteFunc(p.facts, func(path string) bool {
		return slices.ContainsFunc(tested, func(test string) bool { return strings.HasPrefix(path+".", test) })
	})
	return loops
}
