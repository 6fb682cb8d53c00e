package expression

import (
	"bytes"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// A guard is an operand of && at the top level of a condition that can be evaluated without
// decoding the arguments: it depends only on the session, or tests whether an argument exists.
// If a guard is false, the condition is false, even if another operand is an error (CEL, logical
// operators).
type guard struct {
	program *Program // reads nothing of a call; nil if member is set
	member  string   // an argument that has() tests for
}

// guardsOf returns the guards of a condition.
func guardsOf(checked *ast.AST) (guards []guard) {
	sides := conjuncts(nil, checked.Expr())
	if len(sides) < 2 {
		return nil
	}
	for _, side := range sides {
		if g, ok := guardOf(checked, side); ok {
			guards = append(guards, g)
		}
	}
	return guards
}

// conjuncts appends the operands of nested && to out.
func conjuncts(out []ast.Expr, e ast.Expr) []ast.Expr {
	if e.AsCall().FunctionName() != operators.LogicalAnd {
		return append(out, e)
	}
	for _, arg := range e.AsCall().Args() {
		out = conjuncts(out, arg)
	}
	return out
}

func guardOf(checked *ast.AST, side ast.Expr) (guard, bool) {
	if s := side.AsSelect(); s.IsTestOnly() && s.Operand().AsIdent() == "arguments" {
		return guard{member: s.FieldName()}, true
	}
	// An operand that has no source form, such as a loop, cannot be a guard.
	src, err := cel.ExprToString(side, checked.SourceInfo())
	if err != nil {
		return guard{}, false
	}
	p, err := Compile(src, Bool)
	if err != nil || !p.readsNoCall() {
		return guard{}, false
	}
	return guard{program: p}, true
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
// also be escaped differently.
func lacks(object []byte, name string) bool {
	return len(object) == 0 || object[0] == '{' && strings.IndexByte(name, '/') < 0 &&
		!bytes.Contains(object, []byte(name)) && !bytes.Contains(object, []byte(`\u`))
}
