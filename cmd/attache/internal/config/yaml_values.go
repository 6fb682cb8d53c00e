package config

import (
	"github.com/goccy/go-yaml/ast"
)

// giveOne is what to do about a key without a value.
const giveOne = "give it one, or remove the key"

// value reads the value of the field f, which people know as key, into v.
func (r *reader) value(key string, v value, f field) {
	if f.value == nil || f.value.Type() == ast.NullType {
		advice := giveOne
		if v, ok := v.(interface{ insteadOfNothing() string }); ok {
			advice = v.insteadOfNothing()
		}
		r.problems.Add(f.at, "%s: has no value: %s", key, advice)
		return
	}
	switch v := v.(type) {
	case scalar:
		r.scalar(key, v, f.value)
	case structure:
		v.read(r, key, f.value)
	}
}

// kindOf names what n is, for people.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode:
		return "a number"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number with a fraction"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	}
	return "this"
}

// scalar reads n into v.
func (r *reader) scalar(key string, v scalar, n ast.Node) {
	want, ok := "a text (put it in quotes)", false
	switch v.(type) {
	case boolean, maybe:
		want = "true or false"
		_, ok = n.(*ast.BoolNode)
	case count:
		want = "a whole number"
		_, ok = n.(*ast.IntegerNode)
	case duration:
		want = "a duration such as 500ms, 2s or 12h"
		ok = isText(n) || n.Type() == ast.IntegerType
	case size:
		want = "a size such as 8MiB"
		ok = isText(n) || n.Type() == ast.IntegerType
	case variable:
		want = `a text, such as ""`
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			ok = true
		default:
			ok = isText(n)
		}
	default:
		ok = isText(n)
		if !ok && n.Type() == ast.SequenceType {
			want = "one text"
		}
	}
	if !ok {
		r.problem(n, "%s: wants %s, not %s", key, want, kindOf(n))
		return
	}
	if err := v.set(textOf(n), r.base); err != nil {
		r.problem(n, "%s: %v", key, err)
	}
}

func isText(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return true
	}
	return false
}

// textOf returns the text of a scalar as it is written, less its quotes.
func textOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

// items returns the elements of the list n.
func (r *reader) items(key string, n ast.Node) ([]ast.Node, bool) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(n, "%s: wants a list, such as [one, two], not %s", key, kindOf(n))
		return nil, false
	}
	return list.Values, true
}
