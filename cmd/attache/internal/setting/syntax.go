package setting

import (
	"cmp"

	"github.com/goccy/go-yaml/ast"
)

// giveValue is the advice for a key without a value.
const giveValue = "give it one, or remove the key"

// ReadValue reads the value of f into v. Problems call it key.
func (r *Reader) ReadValue(key string, v Value, f Field) {
	if f.Empty() {
		advice := giveValue
		if v, ok := v.(interface{ EmptyAdvice() string }); ok {
			advice = v.EmptyAdvice()
		}
		r.Problems.Add(f.At, "%s: has no value: %s", key, advice)
		return
	}
	switch v := v.(type) {
	case Scalar:
		r.ReadScalar(key, v, f.Value)
	case Structure:
		v.Read(r, key, f.Value)
	}
}

// ReadScalar reads n into v. Problems call it key. n must be a text node, unless v has a method
// Written that accepts other nodes and describes them.
func (r *Reader) ReadScalar(key string, v Scalar, n ast.Node) {
	want, ok := writtenText(n)
	if typed, is := v.(interface{ Written(ast.Node) (string, bool) }); is {
		want, ok = typed.Written(n)
	}
	if !ok {
		r.AddProblem(n, "%s: wants %s, not %s", key, want, KindOf(n))
		return
	}
	if err := v.Set(TextOf(n), r.Base); err != nil {
		r.AddProblem(n, "%s: %v", key, err)
	}
}

// writtenText reports whether n is a text, and describes the nodes that are accepted.
func writtenText(n ast.Node) (want string, ok bool) {
	if n.Type() == ast.SequenceType {
		return "one text", false
	}
	return "a text (put it in quotes)", IsText(n)
}

// Items returns the elements of the list n. Problems call it key.
func (r *Reader) Items(key string, n ast.Node) ([]ast.Node, bool) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.AddProblem(n, "%s: wants a list, such as [one, two], not %s", key, KindOf(n))
		return nil, false
	}
	return list.Values, true
}

// IsText reports whether n is a text: quoted, plain or a block.
func IsText(n ast.Node) bool {
	return n.Type() == ast.StringType || n.Type() == ast.LiteralType
}

// IsMapping reports whether n has keys and values.
func IsMapping(n ast.Node) bool {
	return n.Type() == ast.MappingType || n.Type() == ast.MappingValueType
}

// TextOf returns the text of a scalar without its quotes.
func TextOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

// kinds describes the types of nodes for people.
var kinds = map[ast.NodeType]string{
	ast.MappingType: "keys and values", ast.MappingValueType: "keys and values", ast.SequenceType: "a list",
	ast.StringType: "a text", ast.LiteralType: "a text", ast.IntegerType: "a number", ast.BoolType: "true or false", ast.NullType: "nothing",
	ast.FloatType: "a number with a fraction", ast.InfinityType: "a number with a fraction", ast.NanType: "a number with a fraction",
}

// KindOf describes the type of n for people.
func KindOf(n ast.Node) string { return cmp.Or(kinds[n.Type()], "this") }
