package expression

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/attache-mcp/attache/sessionstate"
)

const trustPath = "session.trust"

// isTrust reports whether session.trust can have the value text. It is empty if nothing
// is known of the session.
func isTrust(text string) bool {
	return text == "" || text == sessionstate.NormalizeTrust(text)
}

// neverTrust returns the error for a comparison of session.trust with another word. Its
// result is always the same, so a rule that should deny would never do so.
func neverTrust(line, column int, text string) *Error {
	return &Error{Line: line, Column: column, Problem: fmt.Sprintf("%s is never %q", trustPath, text), Remedy: `it is "direct" or "sandboxed"`}
}

// checkTrust finds such a comparison.
func checkTrust(checked *ast.AST) error {
	var found error
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || found != nil {
			return
		}
		for _, word := range comparedWithTrust(e.AsCall()) {
			text, ok := word.AsLiteral().(types.String)
			if ok && !isTrust(string(text)) {
				at := checked.SourceInfo().GetStartLocation(word.ID())
				found = neverTrust(at.Line(), at.Column()+1, string(text))
				return
			}
		}
	}))
	return found
}

// comparedWithTrust returns the literals that a call compares session.trust with.
func comparedWithTrust(call ast.CallExpr) []ast.Expr {
	if len(call.Args()) != 2 {
		return nil
	}
	a, b := call.Args()[0], call.Args()[1]
	var words []ast.Expr
	switch name := call.FunctionName(); {
	case name == operators.In && readsTrust(a) && b.Kind() == ast.ListKind:
		words = b.AsList().Elements()
	case name != operators.Equals && name != operators.NotEquals:
	case readsTrust(a):
		words = []ast.Expr{b}
	case readsTrust(b):
		words = []ast.Expr{a}
	}
	literals := words[:0:0]
	for _, w := range words {
		if w.Kind() == ast.LiteralKind {
			literals = append(literals, w)
		}
	}
	return literals
}

func readsTrust(e ast.Expr) bool {
	if e.Kind() != ast.SelectKind {
		return false
	}
	s := e.AsSelect()
	return !s.IsTestOnly() && s.FieldName() == "trust" && s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "session"
}
