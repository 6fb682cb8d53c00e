package expression

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/attache-mcp/attache/sessionstate"
)

const (
	// maxSource is the maximum length of an expression in bytes.
	maxSource = 16 << 10
	// maxCost is the maximum cost of an evaluation in CEL's units: some ten milliseconds.
	maxCost = 1_000_000
	// maxTime bounds an evaluation with loops, for which the session's messages wait.
	maxTime = 50 * time.Millisecond
	// checkEvery is the number of steps of a loop between two checks of the time.
	checkEvery = 128
)

// A language is the CEL environment of expressions.
type language struct {
	env   *cel.Env
	types [objects]*types.Type
}

// theLanguage makes the language for the first expression that needs it, because that takes
// about half a millisecond.
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
		cel.EnableErrorOnBadPresenceTest(true), // else has() of a member of a text is false, and a server may decode the text
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

// typeName returns the name of a type for errors.
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

// checkCost returns an error if an expression could cost too much for inputs of usual size. At
// run time, limits apply to larger inputs.
func checkCost(l *language, checked *cel.Ast) error {
	estimate, err := l.env.EstimateCost(checked, sizes{})
	if err == nil && estimate.Max <= maxCost {
		return nil
	}
	return &Error{Line: 1, Column: 1, Problem: "the expression could take too long", Remedy: "use fewer loops within loops (all, exists, map, filter)"}
}

// sizes estimates the maximum size of usual inputs.
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

func (e *engine) eval(in *Inputs, want Type) (Value, error) {
	result, err := e.run(in)
	if err != nil {
		return Value{}, evalError(err)
	}
	return toValue(result, want)
}

func (e *engine) run(in *Inputs) (result ref.Val, err error) {
	in.makeObjects(e.types)
	if e.loops {
		ctx, cancel := context.WithTimeout(context.Background(), maxTime)
		defer cancel()
		result, _, err = e.program.ContextEval(ctx, (*activation)(in))
	} else {
		result, _, err = e.program.Eval((*activation)(in))
	}
	return result, err
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

// decodedInputs caches the parts of Inputs that were decoded.
type decodedInputs struct {
	of      *Inputs // detects a copy of Inputs
	objects [objects]object

	arguments   ref.Val
	annotations map[string]ref.Val
	annotErr    error
}

// An annotationProbe makes annotations unknown, to find whether a result depends on them.
type annotationProbe struct {
	unknown bool // reading an annotation yields a CEL unknown
	tested  bool // an expression tested with has() whether there is an annotation
}

// makeObjects makes the objects of the inputs, unless they exist.
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

// decodedArguments returns the arguments as a CEL map, or a CEL error.
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

// An activation returns the values of the names in an expression.
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
