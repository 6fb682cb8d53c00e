package config

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/sessionstate/expression"
)

// entries is a list of structures that have the same keys, such as rules.
type entries[T any] struct {
	to       *[]T
	fresh    func() T // an entry with its defaults
	options  func(*T) []option
	required []string       // keys that every entry has
	example  string         // an entry as the configuration writes it
	unset    string         // what is told of a list that nobody set
	terse    bool           // what an entry leaves as it was is not shown
	check    func(*T) error // says what is wrong with an entry as a whole; nil for nothing
	// beside says what is wrong with entry i beside the others, which are well by
	// themselves; nil for nothing
	beside func(all []T, i int) error
	// surprise says what entry i does beside the others that its place does not
	// show, "" for nothing; nil for never
	surprise func(all []T, i int) string
}

// A list is what the reader of the file sees of [entries].
type list interface {
	value
	begin(n int)          // makes the list one of n entries
	entry(i int) []option // what can be set in entry i
	problem(i int) error  // what is wrong with entry i as a whole
	misfit(i int) error   // what is wrong with it beside the others
	warning(i int) string // what it does beside the others that may surprise
	wants() (required []string, example string)
}

func (v entries[T]) begin(n int) {
	*v.to = make([]T, n)
	for i := range *v.to {
		(*v.to)[i] = v.fresh()
	}
}

func (v entries[T]) entry(i int) []option { return v.options(&(*v.to)[i]) }

func (v entries[T]) problem(i int) error {
	if v.check == nil {
		return nil
	}
	return v.check(&(*v.to)[i])
}

func (v entries[T]) misfit(i int) error {
	if v.beside == nil {
		return nil
	}
	return v.beside(*v.to, i)
}

func (v entries[T]) warning(i int) string {
	if v.surprise == nil {
		return ""
	}
	return v.surprise(*v.to, i)
}

func (v entries[T]) wants() (required []string, example string) { return v.required, v.example }

func (v entries[T]) String() string {
	if *v.to == nil && v.unset != "" {
		return v.unset
	}
	var all []string
	for i := range *v.to {
		all = append(all, v.text(i, v.terse))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// text returns entry i as the configuration writes it, "" if there is none; terse
// leaves out what is as if nobody had said it.
func (v entries[T]) text(i int, terse bool) string {
	if i >= len(*v.to) {
		return ""
	}
	fresh := v.fresh()
	unsaid := v.options(&fresh)
	var one []string
	for n, o := range v.options(&(*v.to)[i]) {
		if s := o.value.String(); s != "" && !(terse && s == unsaid[n].value.String()) {
			one = append(one, o.Key+": "+s)
		}
	}
	return "{" + strings.Join(one, ", ") + "}"
}

func (v entries[T]) schema() map[string]any {
	properties := map[string]any{}
	fresh := v.fresh()
	for _, o := range v.options(&fresh) {
		properties[o.Key] = described(o)
	}
	return map[string]any{"type": "array", "items": map[string]any{
		"type":                 "object",
		"properties":           properties,
		"required":             v.required,
		"additionalProperties": false,
	}}
}

// A formula is an expression in CEL that yields want. It is compiled when it is
// read, so what is wrong with it is known before anything runs.
type formula struct {
	to   **expression.Program
	want expression.Type
}

func (v formula) set(s, _ string) error {
	p, err := expression.Compile(s, v.want)
	if err == nil {
		*v.to = p
	}
	return err
}

func (v formula) String() string {
	if *v.to == nil {
		return ""
	}
	return (*v.to).String()
}

func (v formula) schema() map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "description": "an expression that yields " + v.want.String()}
}

// expressions are names and the expressions that give their values.
type expressions struct {
	to *map[string]*expression.Program
}

func (v expressions) String() string {
	var all []string
	for name, p := range *v.to {
		all = append(all, name+": "+p.String())
	}
	slices.Sort(all)
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (v expressions) schema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string", "minLength": 1}}
}
