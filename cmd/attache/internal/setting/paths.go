package setting

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Paths returns a value that is a list of paths into an object. Each is a key, or a list of the keys
// that lead to a member. The first path whose member has a value counts.
func Paths(to *[][]string) Value {
	return List[[]string]{To: to, Item: func(path *[]string) Structure { return objectPath{path} }}
}

// An objectPath reads one path of [Paths].
type objectPath struct{ to *[]string }

func (v objectPath) Read(r *Reader, key string, n ast.Node) {
	switch {
	case IsText(n):
		Words{To: v.to, Single: true}.Read(r, key, n)
	case n.Type() == ast.SequenceType:
		Words{To: v.to, Empty: "name the objects that the path goes through"}.Read(r, key, n)
	default:
		r.AddProblem(n, "%s: wants a text (one key) or a list of texts (a path into objects), not %s", key, KindOf(n))
	}
}

func (v objectPath) String() string {
	if len(*v.to) == 1 {
		return (*v.to)[0]
	}
	return "[" + strings.Join(*v.to, ", ") + "]"
}

func (v objectPath) Schema() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	return map[string]any{"anyOf": []any{text, map[string]any{"type": "array", "minItems": 1, "items": text}}}
}
