package setting

import (
	"cmp"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// writtenText reports whether n is a text, and describes the nodes that are accepted.
func writtenText(n ast.Node) (want string, ok bool) {
	if n.Type() == ast.SequenceType {
		return "one text", false
	}
	return "a text (put it in quotes)", textfile.IsText(n)
}

// kinds describes the types of nodes for people.
var kinds = map[ast.NodeType]string{
	ast.MappingType: "keys and values", ast.MappingValueType: "keys and values", ast.SequenceType: "a list",
	ast.StringType: "a text", ast.LiteralType: "a text", ast.IntegerType: "a number", ast.BoolType: "true or false", ast.NullType: "nothing",
	ast.FloatType: "a number with a fraction", ast.InfinityType: "a number with a fraction", ast.NanType: "a number with a fraction",
}

// KindOf describes the type of n for people.
func KindOf(n ast.Node) string { return cmp.Or(kinds[n.Type()], "this") }
