package setting

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Words is a list of words.
type Words struct {
	To *[]string
	// Known lists the words that are accepted. If it is nil, Check decides; if both are
	// nil, all words are accepted.
	Known []string
	Check func(string) error
	// Empty is the advice for an empty list; "" allows an empty list.
	Empty string
	// Single allows one text in place of a list with one element.
	Single bool
	// Unset describes the default if that is no list.
	Unset string
}

// Read replaces the default with a list of texts.
func (v Words) Read(r *Reader, key string, n ast.Node) {
	if v.Single && textfile.IsText(n) {
		var word string
		r.readScalar(key, Text(&word, NotEmpty), n)
		*v.To = []string{word}
		return
	}
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	if len(items) == 0 && v.Empty != "" {
		r.AddProblem(n, "%s: is empty: %s", key, v.Empty)
	}
	all := make([]string, 0, len(items))
	for _, item := range items {
		var word string
		before := len(r.Problems)
		r.readScalar(key, Text(&word, v.checkWord), item)
		if len(r.Problems) == before {
			all = append(all, word)
		}
	}
	*v.To = all
}

func (v Words) checkWord(s string) error {
	switch {
	case s == "":
		return NotEmpty(s)
	case v.Known != nil:
		_, err := OneOf(s, v.Known)
		return err
	case v.Check != nil:
		return v.Check(s)
	}
	return nil
}

func (v Words) String() string { return "[" + strings.Join(*v.To, ", ") + "]" }

// Shown returns the list, or the description of a default that is no list.
func (v Words) Shown() string {
	if *v.To == nil && v.Unset != "" {
		return v.Unset
	}
	return v.String()
}

// Schema returns the schema of a list, or of one text if that is allowed.
func (v Words) Schema() map[string]any {
	item := map[string]any{"type": "string", "minLength": 1}
	if v.Known != nil {
		item["enum"] = v.Known
	}
	s := map[string]any{"type": "array", "items": item}
	if v.Empty != "" {
		s["minItems"] = 1
	}
	if v.Single {
		return map[string]any{"anyOf": []any{item, s}}
	}
	return s
}

// A List is a list of values of one kind.
type List[T any] struct {
	To   *[]T
	Item func(*T) Structure // returns the reader of one value
}

// Read replaces the default with the values in n.
func (v List[T]) Read(r *Reader, key string, n ast.Node) {
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	*v.To = make([]T, len(items))
	for i, item := range items {
		v.Item(&(*v.To)[i]).Read(r, fmt.Sprintf("%s[%d]", key, i), item)
	}
}

func (v List[T]) String() string {
	var all []string
	for i := range *v.To {
		all = append(all, v.Item(&(*v.To)[i]).String())
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Schema returns the schema of the list.
func (v List[T]) Schema() map[string]any {
	return map[string]any{"type": "array", "items": v.Item(new(T)).Schema()}
}

// A WordOr is an object, or one word in its place.
type WordOr struct {
	Object
	Word   string // stands for an empty object
	IsWord bool   // the value is the word
}

// Read reads the word or the object.
func (v WordOr) Read(r *Reader, key string, n ast.Node) {
	if !textfile.IsText(n) {
		v.Object.Read(r, key, n)
		return
	}
	var word string
	r.readScalar(key, Choice(&word, v.Word), n)
}

func (v WordOr) String() string {
	if v.IsWord {
		return v.Word
	}
	return v.Object.String()
}

// Schema returns the schema of the word or the object.
func (v WordOr) Schema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string", "enum": []string{v.Word}}, v.Object.Schema()}}
}

// Paths returns a value that is a list of paths into an object. Each is a key, or a list of the keys
// that lead to a member. The first path whose member has a value counts.
func Paths(to *[][]string) Value {
	return List[[]string]{To: to, Item: func(path *[]string) Structure { return objectPath{path} }}
}

type objectPath struct{ to *[]string }

func (v objectPath) Read(r *Reader, key string, n ast.Node) {
	switch {
	case textfile.IsText(n):
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
