package expression

import (
	"bytes"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"github.com/tidwall/gjson"
)

// A guard is one side of an && at the top of a condition that can be evaluated without
// the engine: it depends on the session only, or tests whether an argument is there. If
// a guard is false the condition is false, even if another side is an error (CEL,
// logical operators).
type guard struct {
	program *Program // reads nothing of a call; nil if member is set
	member  string   // an argument that has() tests for
}

// guardsOf returns the guards of a condition. all reports that it has no other sides.
func guardsOf(checked *ast.AST) (guards []guard, all bool) {
	sides := conjuncts(nil, checked.Expr())
	if len(sides) < 2 {
		return nil, false
	}
	for _, side := range sides {
		if g, ok := guardOf(checked, side); ok {
			guards = append(guards, g)
		}
	}
	return guards, len(guards) == len(sides)
}

// conjuncts appends the sides of nested && to out.
func conjuncts(out []ast.Expr, e ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.LogicalAnd {
		return append(out, e)
	}
	for _, arg := range e.AsCall().Args() {
		out = conjuncts(out, arg)
	}
	return out
}

func guardOf(checked *ast.AST, side ast.Expr) (guard, bool) {
	if side.Kind() == ast.SelectKind {
		s := side.AsSelect()
		if s.IsTestOnly() && s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "arguments" {
			return guard{member: s.FieldName()}, true
		}
	}
	// A side that cannot be written out, such as a loop, is no guard.
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

// holds evaluates the guard; sure is false if the whole has to be evaluated.
func (g *guard) holds(in *Inputs) (value, sure bool) {
	if g.program == nil {
		if lacks(in.Arguments, g.member) {
			return false, true
		}
		return hasMember(in.Arguments, g.member)
	}
	value, err := g.program.Holds(in)
	return value, err == nil
}

// judge evaluates the guards of a condition. sure is false if the whole has to be
// evaluated.
func (p *Program) judge(in *Inputs) (value, sure bool) {
	known := 0
	for i := range p.guards {
		switch value, sure := p.guards[i].holds(in); {
		case sure && !value:
			return false, true
		case sure:
			known++
		}
	}
	return true, p.guarded && known == len(p.guards)
}

// lacks reports whether an object surely has no member of that name, because its text
// contains neither the name nor \u, the only other spelling. A name with a slash, which
// an expression can have in backticks, has a third one.
func lacks(object []byte, name string) bool {
	return len(object) > 0 && object[0] == '{' && strings.IndexByte(name, '/') < 0 &&
		!bytes.Contains(object, []byte(name)) && !bytes.Contains(object, []byte(`\u`))
}

// hasMember reports whether the object raw has a member of that name, without decoding
// the values. sure is false if a name is escaped, or raw is not an object.
func hasMember(raw []byte, name string) (has, sure bool) {
	if len(raw) == 0 {
		return false, true
	}
	object := gjson.ParseBytes(raw)
	if !object.IsObject() || !gjson.ValidBytes(raw) {
		return false, false
	}
	sure = true
	object.ForEach(func(key, _ gjson.Result) bool {
		inside := key.Raw[1 : len(key.Raw)-1]
		sure = strings.IndexByte(inside, '\\') < 0
		has = sure && inside == name
		return sure && !has
	})
	return has, sure
}
