package expression

import (
	"context"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	// maxSource is how long an expression may be, in bytes.
	maxSource = 16 << 10
	// maxCost is what an evaluation may cost, in CEL's units: some ten
	// milliseconds.
	maxCost = 1_000_000
	// maxTime bounds an evaluation with loops. The session's messages wait for it.
	maxTime = 50 * time.Millisecond
	// checkEvery is the number of steps of a loop between two looks at the clock.
	checkEvery = 128
)

// A language is what expressions are compiled in.
type language struct {
	env   *cel.Env
	types [objects]*types.Type
}

// theLanguage is made for the first expression that is not simple, as that takes about
// half a millisecond. It never changes.
var theLanguage = sync.OnceValues(newLanguage)

func newLanguage() (*language, error) {
	known, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	l := &language{}
	p := &provider{Provider: known}
	l.types, p.fields = vocabularyOf()
	l.env, err = cel.NewEnv(
		cel.CustomTypeProvider(p),
		cel.CustomTypeAdapter(known),
		cel.Variable("session", l.types[objSession]),
		cel.Variable("principal", l.types[objPrincipal]),
		cel.Variable("tool", l.types[objTool]),
		cel.Variable("server", l.types[objServer]),
		cel.Variable("arguments", cel.MapType(cel.StringType, cel.DynType)),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), patterns{}),
		cel.ParserExpressionSizeLimit(maxSource),
		cel.ParserRecursionLimit(64),
	)
	return l, err
}

// An engine is an expression compiled by CEL.
type engine struct {
	types   *[objects]*types.Type
	program cel.Program
	loops   bool
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
	var loops bool
	p.uses, p.arguments, loops = analyse(checked.NativeRep())
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
		v, err := p.engine.eval(&Inputs{}, want)
		if err != nil {
			return nil, &Error{Line: 1, Column: 1, Problem: err.Error(), Remedy: "it reads nothing of a session or call, and so fails each time"}
		}
		p.fixed, p.engine = &v, nil
	}
	return p, nil
}

// yields reports whether a result of type t can be what is wanted. The types of
// arguments are known only at run time.
func yields(t *types.Type, want Type) bool {
	switch t.Kind() {
	case types.DynKind:
		return true
	case types.BoolKind:
		return want == Bool || want == Any
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

// typeName returns the name of a type for people.
func typeName(t *types.Type) string {
	switch t.Kind() {
	case types.BoolKind:
		return Bool.String()
	case types.StringKind:
		return aString
	case types.IntKind, types.UintKind, types.DoubleKind:
		return "a number"
	case types.ListKind:
		return "a list"
	case types.MapKind:
		return "a map"
	case types.StructKind:
		return "an object with fields"
	}
	return "a value of type " + t.String()
}

// checkCost refuses an expression that could cost too much for inputs of a usual size.
// Larger inputs are bounded at run time.
func checkCost(l *language, checked *cel.Ast) error {
	estimate, err := l.env.EstimateCost(checked, sizes{})
	if err == nil && estimate.Max <= maxCost {
		return nil
	}
	return &Error{Line: 1, Column: 1, Problem: "the expression could take too long", Remedy: "use fewer loops within loops (all, exists, map, filter)"}
}

// sizes estimates how large inputs usually are at most.
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

// EstimateCallCost implements cost.Estimator.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// analyse returns what an expression reads, which arguments in particular, and whether
// it can take longer than to look at each of its inputs once, because it has a loop or
// matches a pattern.
func analyse(checked *ast.AST) (u uses, arguments [][]string, loops bool) {
	read := chains{}
	ast.PostOrderVisit(ast.NavigateAST(checked), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			read[e.ID()] = chain{[]string{e.AsIdent()}, loopOver(e.(ast.NavigableExpr))}
		case ast.SelectKind:
			read.field(e, e.AsSelect().Operand(), e.AsSelect().FieldName())
		case ast.ComprehensionKind:
			loops = true
			if of, ok := read[e.AsComprehension().IterRange().ID()]; ok && isFilter(e.AsComprehension()) {
				read[e.ID()] = of
			}
		case ast.CallKind:
			loops = loops || e.AsCall().FunctionName() == "matches"
			read.call(e)
		}
	}))
	for _, c := range read {
		u |= usesOf(strings.Join(c.names, "."))
		if path := read.path(c); path[0] == "arguments" {
			arguments = append(arguments, path[1:])
		}
	}
	return u, arguments, loops
}

func (e *engine) eval(in *Inputs, want Type) (Value, error) {
	in.makeObjects(e.types)
	var result ref.Val
	var err error
	if e.loops {
		ctx, cancel := context.WithTimeout(context.Background(), maxTime)
		defer cancel()
		result, _, err = e.program.ContextEval(ctx, (*activation)(in))
	} else {
		result, _, err = e.program.Eval((*activation)(in))
	}
	if err != nil {
		return Value{}, evalError(err)
	}
	return toValue(result, want)
}

func toValue(result ref.Val, want Type) (Value, error) {
	switch want {
	case Bool:
		if b, ok := result.(types.Bool); ok {
			return Value{Bool: bool(b)}, nil
		}
	case Any:
		if v, ok := native(result); ok {
			if text, err := encode(v); err == nil {
				return Value{JSON: text}, nil
			}
		}
	}
	return Value{}, ErrType
}

// decodedInputs holds what was decoded of Inputs so far.
type decodedInputs struct {
	of      *Inputs // as Inputs may have been copied
	objects [objects]object

	arguments   ref.Val
	annotations map[string]ref.Val
	annotErr    error
}

// makeObjects makes the objects of the inputs.
func (in *Inputs) makeObjects(t *[objects]*types.Type) {
	d := &in.derived
	if d.of == in {
		return
	}
	*d = decodedInputs{of: in}
	for i := range d.objects {
		d.objects[i] = object{in, t[i]}
	}
}

func (in *Inputs) object(i int) *object { return &in.derived.objects[i] }

// decodedArguments returns the arguments as a map, or an error as a value.
func (in *Inputs) decodedArguments() ref.Val {
	d := &in.derived
	if d.arguments == nil {
		members, err := decodeObject(in.Arguments)
		if d.arguments = types.NewStringInterfaceMap(types.DefaultTypeAdapter, members); err != nil {
			d.arguments = types.WrapErr(err)
		}
	}
	return d.arguments
}

func (in *Inputs) decodedAnnotations() (map[string]ref.Val, error) {
	d := &in.derived
	if d.annotations == nil && d.annotErr == nil {
		members, err := decodeObject(in.Annotations)
		d.annotErr = err
		d.annotations = map[string]ref.Val{}
		for key, v := range members {
			d.annotations[key], _ = v.(ref.Val)
		}
	}
	return d.annotations, d.annotErr
}

// An activation gives CEL the values of the names in an expression.
type activation Inputs

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	in := (*Inputs)(a)
	switch name {
	case "session":
		return in.object(objSession), true
	case "principal":
		return in.object(objPrincipal), true
	case "tool":
		return in.object(objTool), true
	case "server":
		return in.object(objServer), true
	case "arguments":
		return in.decodedArguments(), true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (a *activation) Parent() cel.Activation { return nil }
