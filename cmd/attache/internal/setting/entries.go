package setting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Entries is a list of objects that have the same keys, such as rules.
type Entries[T any] struct {
	To       *[]T
	Default  T                // an entry of which nothing is set
	Name     func(*T) *string // returns the field for the name, such as servers.git.arguments[0]
	Options  func(*T) []Option
	Required []string       // keys that every entry has
	Example  string         // an entry as the configuration writes it
	Unset    string         // the text shown for a list that is not set
	Check    func(*T) error // returns what is wrong with an entry; nil accepts all
	// CheckOrder returns an error if entry i conflicts with the others, which Check has
	// accepted; nil accepts any order.
	CheckOrder func(all []T, i int) error
	// Warn returns a warning about entry i in relation to the others, or "" if there is none.
	Warn func(all []T, i int) string
}

// EmptyAdvice returns what to do about a key without a value.
func (v Entries[T]) EmptyAdvice() string { return Words{}.EmptyAdvice() }

// Read replaces the default with a list of objects.
func (v Entries[T]) Read(r *Reader, key string, n ast.Node) {
	items, ok := r.Items(key, n)
	if !ok {
		return
	}
	*v.To = make([]T, len(items))
	before := len(r.Problems)
	for i, item := range items {
		(*v.To)[i] = v.Default
		name := fmt.Sprintf("%s%s[%d]", r.EntryPrefix, key, i)
		*v.Name(&(*v.To)[i]), r.Origins[name] = name, r.Place(item)
		v.readEntry(r, fmt.Sprintf("%s[%d]", key, i), &(*v.To)[i], item)
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

func (v Entries[T]) readEntry(r *Reader, key string, to *T, n ast.Node) {
	before := len(r.Problems)
	entry := Object{Options: v.Options(to), Required: v.Required, Example: v.Example}
	has, ok := entry.ReadKeys(r, key, n)
	switch {
	case ok && len(has) == 0:
		r.AddProblem(n, "%s: this rule is empty: write it as %s, or remove it", key, v.Example)
		return
	case ok: // an unknown key may be a misspelled required one
		entry.require(r, key, n, has)
	}
	if len(r.Problems) == before && v.Check != nil {
		if err := v.Check(to); err != nil {
			r.AddProblem(n, "%s: %v", key, err)
		}
	}
}

func (v Entries[T]) String() string {
	if *v.To == nil && v.Unset != "" {
		return v.Unset
	}
	var all []string
	for i := range *v.To {
		all = append(all, v.text(i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// entryList is implemented by [Entries] of every type.
type entryList interface {
	names() []string
	entryText(name string) string
}

func (v Entries[T]) names() (all []string) {
	for i := range *v.To {
		all = append(all, *v.Name(&(*v.To)[i]))
	}
	return all
}

// entryText returns the text of the entry of that name, "" if there is none.
func (v Entries[T]) entryText(name string) string {
	if i := slices.Index(v.names(), name); i >= 0 {
		return v.text(i)
	}
	return ""
}

// text returns entry i as the configuration writes it, without default values.
func (v Entries[T]) text(i int) string {
	fresh := v.Default
	return text(v.Options(&(*v.To)[i]), v.Options(&fresh))
}

// Schema returns the schema of the list.
func (v Entries[T]) Schema() map[string]any {
	fresh := v.Default
	item := Object{Options: v.Options(&fresh), Required: v.Required}.Schema()
	return map[string]any{"type": "array", "items": item}
}
