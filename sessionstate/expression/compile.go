package expression

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/attache-mcp/attache/sessionstate"
)

// Compile compiles an expression with a result of type want. The error is an *[Error].
func Compile(src string, want Type) (*Program, error) {
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Line: 1, Column: 1, Problem: "the expression is empty", Remedy: "write " + want.String() + " or leave the key out"}
	}
	if len(src) > maxSource || !utf8.ValidString(src) {
		return nil, &Error{Line: 1, Column: 1, Problem: "the expression is longer than 16 KiB or not UTF-8", Remedy: "write a shorter one"}
	}
	// Expressions that need no engine come first. The first use of the engine takes half a millisecond,
	// and the client that starts attache waits for it.
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

func compileCEL(src string, want Type) (*Program, error) {
	l, err := theLanguage()
	if err != nil {
		return nil, err
	}
	checked, issues := l.env.Compile(src)
	if issues.Err() != nil {
		return nil, compileError(src, issues.Errors())
	}
	if !yields(checked.OutputType(), want) {
		return nil, mismatch(src, typeName(checked.OutputType()), want)
	}
	if err := checkTrust(checked.NativeRep()); err != nil {
		return nil, err
	}
	if err := checkCost(l, checked); err != nil {
		return nil, err
	}
	p := &Program{source: src, want: want}
	loops := p.analyse(checked.NativeRep())
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops {
		options = append(options, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(checkEvery))
	}
	program, err := l.env.Program(checked, options...)
	if err != nil {
		return nil, &Error{Line: 1, Column: 1, Problem: "the expression cannot be planned", Remedy: err.Error()}
	}
	p.engine = &engine{types: &l.types, program: program, loops: loops}
	if want == Bool {
		p.guards = guardsOf(checked.NativeRep())
	}
	if p.uses == 0 {
		// A constant is evaluated now. An error, as of 1 / 0, is a mistake in the rule.
		v, err := p.engine.eval(&Inputs{}, want)
		if err != nil {
			return nil, &Error{Line: 1, Column: 1, Problem: err.Error(), Remedy: "it reads nothing of a session or call, and so fails each time"}
		}
		p.fixed, p.engine = &v, nil
	}
	return p, nil
}

// yields reports whether an expression of type t can have a result of type want. The types of
// arguments are known only at run time.
func yields(t *types.Type, want Type) bool {
	switch t.Kind() {
	case types.DynKind, types.BoolKind:
		return true
	case types.StringKind, types.NullTypeKind, types.IntKind, types.UintKind, types.DoubleKind:
		return want == Any
	case types.ListKind:
		return want == Any && yields(t.Parameters()[0], Any)
	case types.MapKind:
		key := t.Parameters()[0].Kind()
		return want == Any && (key == types.StringKind || key == types.DynKind) && yields(t.Parameters()[1], Any)
	}
	return false
}

// typeName returns the name of a type for errors.
func typeName(t *types.Type) string {
	return cmp.Or(map[types.Kind]string{
		types.BoolKind: Bool.String(), types.StringKind: aString, types.ListKind: "a list", types.MapKind: "a map",
		types.IntKind: "a number", types.UintKind: "a number", types.DoubleKind: "a number", types.StructKind: "an object with fields",
	}[t.Kind()], "a value of type "+t.String())
}

// checkCost returns an error if an expression could cost too much for inputs of usual size. At
// run time, limits apply to larger inputs. A loop over an argument counts 100 rounds (see sizes), so
// two loops within each other are accepted and three are not.
func checkCost(l *language, checked *cel.Ast) error {
	estimate, err := l.env.EstimateCost(checked, sizes{})
	if err == nil && estimate.Max <= maxCost {
		return nil
	}
	return &Error{Line: 1, Column: 1, Problem: "the expression could take too long", Remedy: "use fewer loops within loops (all, exists, map, filter)"}
}

// sizes estimates the maximum size of usual inputs: characters of a string, elements of a list or
// object. For values that the expression computes, which have no path, CEL estimates better itself.
type sizes struct{}

// EstimateSize implements cost.Estimator.
func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return nil
	}
	switch n.Type().Kind() {
	case types.StringKind:
		return &cost.SizeEstimate{Max: 1000}
	case types.ListKind, types.MapKind, types.DynKind:
		return &cost.SizeEstimate{Max: 100}
	}
	return nil
}

// EstimateCallCost implements cost.Estimator. nil stands for CEL's own estimate.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// guardsOf returns the guards of a condition. They save the engine for most rules that do not apply.
// In this condition the first two operands are guards:
//
//	session.trust == "sandboxed" && has(arguments.path) && arguments.path.startsWith("/etc")
//
// A condition with one operand has none: its guard would be the condition itself.
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

// guardOf returns the guard for an operand of &&. ok is false if the operand cannot be a guard.
func guardOf(checked *ast.AST, side ast.Expr) (_ guard, ok bool) {
	if s := side.AsSelect(); s.IsTestOnly() && s.Operand().AsIdent() == "arguments" {
		return guard{member: s.FieldName()}, true
	}
	// An operand that has no source form, such as a loop, cannot be a guard.
	src, err := cel.ExprToString(side, checked.SourceInfo())
	if err != nil {
		return guard{}, false
	}
	// This compiles each operand a second time, but not a third time: no operand is an && itself.
	p, err := Compile(src, Bool)
	if err != nil || !p.readsNoCall() {
		return guard{}, false
	}
	return guard{program: p}, true
}
