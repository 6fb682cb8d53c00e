package expression

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// loopOver returns the id of the range of the loop that defines the identifier e, 0 if no loop
// does.
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

// isFilter reports whether a loop appends its own variable, so that it returns elements of its range.
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

// element stands in a path for the elements of a list, or for members that are not named.
const element = "[]"

// A chain is names that an expression reads one behind the other: an identifier and fields of it.
type chain struct {
	names []string
	over  int64 // see loopOver
}

// chains are the longest chains, by the id of the part of the expression that they end in.
type chains map[int64]chain

// path returns where a chain leads. One that begins with the variable of a loop leads into the
// elements of what that runs over.
func (c chains) path(of chain) []string {
	over, known := c[of.over]
	if !known {
		return of.names
	}
	return slices.Concat(c.path(over), []string{element}, of.names[1:])
}

// field records that e is a field of the value that operand ends in.
func (c chains) field(e, operand ast.Expr, name string) {
	if of, ok := c[operand.ID()]; ok {
		delete(c, operand.ID())
		c[e.ID()] = chain{slices.Concat(of.names, []string{name}), of.over}
	}
}

// call records a field that is written as x["name"] or "name" in x.
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
	if name, ok := key.AsLiteral().(types.String); ok {
		c.field(e, of, string(name))
	} else if e.AsCall().FunctionName() == operators.Index {
		c.field(e, of, element)
	}
}
