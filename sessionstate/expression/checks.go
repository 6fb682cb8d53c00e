package expression

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/attache-mcp/attache/sessionstate"
)

const trustPath = "session.trust"

// isTrust reports whether session.trust can have the value text. It is "" if the trust is unknown.
func isTrust(text string) bool {
	return text == "" || text == sessionstate.NormalizeTrust(text)
}

// checkTrust returns an error if the expression compares session.trust with any other word. The
// result would always be the same, so a rule that should deny would never do so.
func checkTrust(checked *ast.AST) (found error) {
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		for _, word := range comparedWithTrust(e.AsCall()) {
			text, ok := word.AsLiteral().(types.String)
			if ok && !isTrust(string(text)) && found == nil {
				at := checked.SourceInfo().GetStartLocation(word.ID())
				found = &Error{Line: at.Line(), Column: at.Column() + 1, Problem: fmt.Sprintf("%s is never %q", trustPath, string(text)), Remedy: `it is "direct" or "sandboxed"`}
			}
		}
	}))
	return found
}

// comparedWithTrust returns the expressions with which a call compares session.trust:
//
//	session.trust == "x"           "x"
//	"x" != session.trust           "x"
//	session.trust in ["x", "y"]    "x" and "y"
func comparedWithTrust(call ast.CallExpr) []ast.Expr {
	if len(call.Args()) != 2 {
		return nil
	}
	a, b := call.Args()[0], call.Args()[1]
	switch name := call.FunctionName(); {
	case name == operators.In && readsTrust(a):
		return b.AsList().Elements()
	case name != operators.Equals && name != operators.NotEquals:
	case readsTrust(a):
		return []ast.Expr{b}
	case readsTrust(b):
		return []ast.Expr{a}
	}
	return nil
}

// readsTrust reports whether e is session.trust. AsSelect and AsIdent return empty values for
// expressions of other kinds.
func readsTrust(e ast.Expr) bool {
	s := e.AsSelect()
	return s.FieldName() == "trust" && !s.IsTestOnly() && s.Operand().AsIdent() == "session"
}

// patterns checks the literal patterns of matches. CEL's own check does not return the reason,
// and in matches(text, pattern) it checks the text instead of the pattern.
type patterns struct{}

// Name implements [cel.ASTValidator].
func (patterns) Name() string { return "attache.patterns" }

// Validate implements [cel.ASTValidator].
func (patterns) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, found *cel.Issues) {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher(overloads.Matches)) {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		text, _ := pattern.AsLiteral().(types.String) // the empty pattern is valid
		if strings.ContainsRune(string(text), '\b') { // certainly meant as a word boundary
			found.ReportErrorAtID(pattern.ID(), "the pattern contains a backspace, which is what \\b means in quotes")
		}
		if _, err := regexp.Compile(string(text)); err != nil {
			found.ReportErrorAtID(pattern.ID(), "%s%s", notPattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
}
