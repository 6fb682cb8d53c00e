package expression

import (
	"context"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
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
	// loops is set if the program has a loop or matches a pattern. Only such a program has the limits
	// maxCost and maxTime.
	loops bool
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

// toValue returns a result as the type that the rule wants. Compile has refused most results without a
// JSON form (see yields), but dyn hides types from it: the value of dyn(b"x") is an error here.
func toValue(result ref.Val, want Type) (Value, error) {
	if b, ok := result.(types.Bool); ok && want == Bool {
		return Value{Bool: bool(b)}, nil
	}
	if v, ok := native(result); ok && want == Any {
		if text, err := encode(v); err == nil {
			return Value{JSON: text}, nil
		}
	}
	return Value{}, ErrType
}
