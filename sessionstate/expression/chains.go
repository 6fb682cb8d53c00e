package expression

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/attache-mcp/attache/sessionstate"
)

// loopOver returns the id of the range of the loop that defines the identifier e, or 0 if e is
// not the variable of a loop.
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

// isFilter reports whether the result of a loop consists of elements of its range.
func isFilter(loop ast.ComprehensionExpr) bool {
	step := loop.LoopStep()
	if step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.Conditional {
		step = step.AsCall().Args()[1]
	}
	if step.Kind() != ast.CallKind || step.AsCall().FunctionName() != operators.Add || step.AsCall().Args()[1].Kind() != ast.ListKind {
		return false
	}
	appended := step.AsCall().Args()[1].AsList().Elements()
	return len(appended) == 1 && appended[0].Kind() == ast.IdentKind && appended[0].AsIdent() == loop.IterVar()
}

// element stands in a path for all elements of a list, and member for members with computed names.
const (
	element = "[]"
	member  = "{}"
)

// A chain is an identifier followed by the names of nested fields.
type chain struct {
	names []string
	over  int64 // see loopOver
}

// chains maps the id of an expression to the longest chain that ends there.
type chains map[int64]chain

// path returns the path that a chain reads. If the chain begins with the variable of a loop, the
// path begins with that of the loop's range.
func (c chains) path(of chain) []string {
	over, known := c[of.over]
	if !known {
		return of.names
	}
	outer, inner := c.path(over), element
	if len(outer) == 1 {
		inner = member // a loop over an input, not over a part of it, is over the names of its members
	}
	return slices.Concat(outer, []string{inner}, of.names[1:]) // without the variable of the loop
}

// field records that e is the field name of operand. The chain of operand is removed: otherwise
// arguments.path would also count as a use of all arguments.
func (c chains) field(e, operand ast.Expr, name string) {
	if of, ok := c[operand.ID()]; ok {
		delete(c, operand.ID())
		c[e.ID()] = chain{slices.Concat(of.names, []string{name}), of.over}
	}
}

// call records a field that is read by x["name"] or "name" in x.
func (c chains) call(e ast.Expr) {
	args := e.AsCall().Args()
	if len(args) != 2 {
		return
	}
	of, key := args[0], args[1]
	switch e.AsCall().FunctionName() {
	case operators.In:
		of, key = key, of
	case operators.Index:
	default:
		return
	}
	switch name := key.AsLiteral().(type) {
	case types.String:
		c.field(e, of, string(name))
	case nil: // the key is computed
		c.field(e, of, member)
	default: // a number
		c.field(e, of, element)
	}
}

// analyse sets what p uses and reads: inputs, arguments, string literals, and facts except those that
// it tests with has() or a comparison. It reports whether evaluation needs limits, because p has a loop
// or matches a pattern.
func (p *Program) analyse(checked *ast.AST) (loops bool) {
	read, tests := chains{}, map[int64]bool{}
	ast.PostOrderVisit(ast.NavigateAST(checked), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.LiteralKind:
			if text, ok := e.AsLiteral().(types.String); ok && text != "" {
				p.texts = append(p.texts, string(text))
			}
		case ast.IdentKind:
			read[e.ID()] = chain{[]string{e.AsIdent()}, loopOver(e.(ast.NavigableExpr))}
		case ast.SelectKind:
			read.field(e, e.AsSelect().Operand(), e.AsSelect().FieldName())
			tests[e.ID()] = e.AsSelect().IsTestOnly()
		case ast.ComprehensionKind:
			loops = true
			if of, ok := read[e.AsComprehension().IterRange().ID()]; ok && isFilter(e.AsComprehension()) {
				read[e.ID()] = of
			}
		case ast.CallKind:
			loops = loops || e.AsCall().FunctionName() == "matches"
			read.call(e)
			switch e.AsCall().FunctionName() {
			case operators.Equals, operators.NotEquals, operators.In:
				for _, side := range e.AsCall().Args() {
					tests[side.ID()] = true
				}
			}
		}
	}))
	var tested []string
	for id, c := range read {
		path := strings.Join(c.names, ".")
		p.uses |= usesOf(path)
		if tests[id] {
			tested = append(tested, path+".")
		} else if sessionstate.KnownPath(path) {
			p.facts = append(p.facts, path)
		}
		if path := read.path(c); path[0] == "arguments" {
			p.arguments = append(p.arguments, path[1:])
		}
	}
	p.facts = slices.DeleteFunc(p.facts, func(path string) bool {
		return slices.ContainsFunc(tested, func(test string) bool { return strings.HasPrefix(path+".", test) })
	})
	return loops
}
