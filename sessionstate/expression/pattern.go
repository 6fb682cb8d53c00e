package expression

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// notPattern begins the error for an invalid pattern of matches.
const notPattern = "the pattern is not a regular expression: "

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
