package setting

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Paths are places in an object, each a key or the keys on the way to it, in the order in
// which they are read until one has a value.
type Paths struct{ To *[][]string }

// EmptyAdvice returns what to do about a key without a value.
func (v Paths) EmptyAdvice() string { return Words{}.EmptyAdvice() }

// Read implements [Structure].
func (v Paths) Read(r *Reader, key string, n ast.Node) {
	items, ok := r.Items(key, n)
	if !ok {
		return
	}
	all := make([][]string, 0, len(items))
	for _, item := range items {
		var path []string
		switch {
		case IsText(item):
			var word string
			r.ReadScalar(key, Text(&word, NotEmpty), item)
			path = []string{word}
		case item.Type() == ast.SequenceType:
			Words{To: &path}.Read(r, key, item)
			if len(path) == 0 {
				r.AddProblem(item, "%s: this path is empty: name the objects it goes through", key)
			}
		default:
			r.AddProblem(item, "%s: wants a text (one key) or a list of texts (a path into objects), not %s", key, KindOf(item))
		}
		all = append(all, path)
	}
	*v.To = all
}

// String implements [Value].
func (v Paths) String() string {
	var all []string
	for _, p := range *v.To {
		if len(p) == 1 {
			all = append(all, p[0])
			continue
		}
		all = append(all, "["+strings.Join(p, ", ")+"]")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Schema implements [Value].
func (v Paths) Schema() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	path := map[string]any{"type": "array", "minItems": 1, "items": text}
	return map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{text, path}}}
}
