package filesource

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// fields are the allowed keys of a mapping, in the order of error messages.
type fields []field

type field struct {
	key  string
	read func(ast.Node)
}

// fields reads the mapping n, which problems call what. It reports whether n is a mapping.
func (r *reader) fields(n ast.Node, what string, known fields) bool {
	if !textfile.IsMapping(n) {
		r.add(textfile.Start(n), "%s is %s where a mapping is expected: write %s: and what belongs to it", what, kind(n), known[0].key)
		return false
	}
	seen := map[string]*token.Token{}
	for iter := n.(ast.MapNode).MapRange(); iter.Next(); {
		at := iter.Key().GetToken()
		key := at.Value
		if first := seen[key]; first != nil {
			r.add(at, "key %s already exists, in line %d: take one of them out", quote(key), first.Position.Line)
			continue
		}
		seen[key] = at
		if i := slices.IndexFunc(known, func(f field) bool { return f.key == key }); i >= 0 {
			known[i].read(iter.Value())
			continue
		}
		hint := "the keys here are " + strings.Join(known.keys(), ", ")
		if near := nearest(key, known.keys()); near != "" {
			hint = "write " + near
		}
		r.add(at, "unknown key %s: %s", quote(key), hint)
	}
	return true
}

// items returns the entries of the list n, which is the value of key. A missing value is an
// empty list.
func (r *reader) items(n ast.Node, key string) []ast.Node {
	switch n := n.(type) {
	case *ast.SequenceNode:
		return n.Values
	case *ast.NullNode:
		return nil
	}
	r.add(textfile.Start(n), "%s is %s where a list is expected: begin each entry with a dash", key, kind(n))
	return nil
}

func (f fields) keys() []string {
	var keys []string
	for _, known := range f {
		keys = append(keys, known.key)
	}
	return keys
}

// kind returns the kind of n for people who write YAML.
func kind(n ast.Node) string {
	switch n.Type() {
	case ast.NullType:
		return "empty"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.StringType, ast.LiteralType:
		return "text"
	}
	return "something else"
}

// nearest returns the known word of which word is probably a misspelling, "" if there is none.
func nearest(word string, known []string) string {
	return textfile.Nearest(word, known, max(2, len(word)/3))
}

// quote quotes text from a file, so that it is safe to print on a terminal.
func quote(s string) string {
	const longest = 60
	if runes := []rune(s); len(runes) > longest {
		s = string(runes[:longest]) + "..."
	}
	return strconv.Quote(s)
}
