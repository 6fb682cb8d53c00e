package setting

import (
	"cmp"

	"github.com/goccy/go-yaml/ast"
)

// writtenText reports whether n is a text, and describes the nodes that are accepted.
func writtenText(n ast.Node) (want string, ok bool) {
	if n.Type() == ast.SequenceType {
		return "one text", false
	}
	return "a text (put it in quotes)", IsText(n)
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
