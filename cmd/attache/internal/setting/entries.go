package setting

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Entries is a list of objects that have the same keys, such as rules.
type Entries[T any] struct {
	To       *[]T
	Default  T                // an entry of which nothing is set
	Name     func(*T) *string // returns the field for the name, such as servers.git.arguments[0]
	Options  func(*T) []Option
	Required []string // keys that every entry has
	Example  string   // an entry as the configuration writes it
	Unset    string   // the text shown for a list that is not set
	// Check returns what is wrong with entry i by itself or after the entries before it.
	Check func(all []T, i int) error
	// CheckOrder returns an error if entry i conflicts with the others, which Check has
	// accepted; nil accepts any order.
	CheckOrder func(all []T, i int) error
	// Warn returns a warning about entry i in relation to the others, or "" if there is none.
	Warn func(all []T, i int) string
}

// Read replaces the default with a list of objects.
func (v Entries[T]) Read(r *Reader, key string, n ast.Node) {
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	*v.To = make([]T, len(items))
	before := len(r.Problems)
	for i, item := range items {
		(*v.To)[i] = v.Default
		name := fmt.Sprintf("%s%s[%d]", r.EntryPrefix, key, i)
		*v.Name(&(*v.To)[i]), r.Origins[name] = name, r.Place(item)
		v.readEntry(r, fmt.Sprintf("%s[%d]", key, i), i, item)
	}
	if len(r.Problems) > before {
		return
	}
	for i, item := range items {
		if v.CheckOrder != nil {
			if err := v.CheckOrder(*v.To, i); err != nil {
				r.AddProblem(item, "%s[%d]: %v", key, i, err)
			}
		}
		if v.Warn != nil {
			if text := v.Warn(*v.To, i); text != "" {
				r.Warnings.Add(r.Place(item), "%s[%d]: %s", key, i, text)
			}
		}
	}
}

func (v Entries[T]) readEntry(r *Reader, key string, i int, n ast.Node) {
	before := len(r.Problems)
	entry := Object{Options: v.Options(&(*v.To)[i]), Required: v.Required, Example: v.Example}
	has, ok := entry.readKeys(r, key, n)
	switch {
	case ok && len(has) == 0:
		r.AddProblem(n, "%s: this rule is empty: write it as %s, or remove it", key, v.Example)
		return
	case ok: // an unknown key may be a misspelled required one
		entry.require(r, key, n, has)
	}
	if len(r.Problems) == before {
		if err := v.Check(*v.To, i); err != nil {
			r.AddProblem(n, "%s: %v", key, err)
		}
	}
}

func (v Entries[T]) String() string {
	if *v.To == nil && v.Unset != "" {
		return v.Unset
	}
	var all []string
	for _, e := range v.entries() {
		all = append(all, e.Text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (v Entries[T]) entries() (all []Entry) {
	fresh := v.Default
	for i := range *v.To {
		e := &(*v.To)[i]
		all = append(all, Entry{*v.Name(e), text(v.Options(e), v.Options(&fresh))})
	}
	return all
}

// Schema returns the schema of the list.
func (v Entries[T]) Schema() map[string]any {
	fresh := v.Default
	item := Object{Options: v.Options(&fresh), Required: v.Required}.Schema()
	return map[string]any{"type": "array", "items": item}
}
