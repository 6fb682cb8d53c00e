package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/sessionstate/expression"
)

// object is a value with keys of its own.
type object struct {
	options []option
	example string // the object as the configuration writes it
}

func (v object) String() string { return optionsText(v.options, nil) }

// optionsText returns options as the configuration writes them, without those that
// have no value, or the same as in defaults.
func optionsText(options, defaults []option) string {
	var all []string
	for i, o := range options {
		s := o.value.String()
		if s != "" && s != "[]" && s != "{}" && (defaults == nil || s != defaults[i].value.String()) {
			all = append(all, o.Key+": "+s)
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (v object) schema() map[string]any {
	properties := map[string]any{}
	for _, o := range v.options {
		properties[o.Key] = described(o)
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

func (v object) insteadOfNothing() string { return "write it as " + v.example + ", or remove it" }

func (v object) read(r *reader, key string, n ast.Node) { v.readKeys(r, key, n) }

// readKeys reads n and returns which keys it has. The bool is false if one of them is
// unknown, or n is no object.
func (v object) readKeys(r *reader, key string, n ast.Node) (has map[string]bool, ok bool) {
	fields, ok := r.fields(n, key)
	has = map[string]bool{}
	known := &reader{options: v.options}
	for _, f := range fields {
		o, is := known.option(f.name)
		has[f.name], ok = true, ok && is
		if is {
			r.value(key+"."+f.name, o.value, f)
		} else {
			r.problems.Add(f.at, "%s: unknown key %q%s", key, f.name, known.suggest("", f.name))
		}
	}
	return has, ok
}

// entries is a list of objects that have the same keys, such as rules.
type entries[T any] struct {
	to       *[]T
	fresh    func() T         // an entry with its defaults
	name     func(*T) *string // where an entry keeps its name: servers.git.arguments[0]
	options  func(*T) []option
	required []string       // keys that every entry has
	example  string         // an entry as the configuration writes it
	unset    string         // what is shown of a list that nobody set
	terse    bool           // values that are the defaults are not shown
	check    func(*T) error // returns what is wrong with an entry by itself; nil for nothing
	// checkOrder returns what is wrong with entry i beside the others, which are
	// valid by themselves; nil for nothing
	checkOrder func(all []T, i int) error
	// warn returns what entry i does beside the others that may surprise, "" for
	// nothing; nil for never
	warn func(all []T, i int) string
}

func (v entries[T]) insteadOfNothing() string { return words{}.insteadOfNothing() }

func (v entries[T]) read(r *reader, key string, n ast.Node) {
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	*v.to = make([]T, len(items))
	before := len(r.problems)
	for i, item := range items {
		(*v.to)[i] = v.fresh()
		name := fmt.Sprintf("%s%s[%d]", r.within, key, i)
		*v.name(&(*v.to)[i]), r.settings.origins[name] = name, r.place(item)
		v.readEntry(r, fmt.Sprintf("%s[%d]", key, i), &(*v.to)[i], item)
	}
	if len(r.problems) > before {
		return
	}
	for i, item := range items {
		if v.checkOrder != nil {
			if err := v.checkOrder(*v.to, i); err != nil {
				r.problem(item, "%s[%d]: %v", key, i, err)
			}
		}
		if v.warn != nil {
			if text := v.warn(*v.to, i); text != "" {
				r.settings.Warnings.Add(r.place(item), "%s[%d]: %s", key, i, text)
			}
		}
	}
}

// readEntry reads one entry.
func (v entries[T]) readEntry(r *reader, key string, to *T, n ast.Node) {
	before := len(r.problems)
	has, ok := object{options: v.options(to)}.readKeys(r, key, n)
	if ok && len(has) == 0 {
		r.problem(n, "%s: this rule is empty: write it as %s, or remove it", key, v.example)
		return
	}
	for _, name := range v.required {
		if ok && !has[name] { // else the unknown key may be the one
			r.problem(n, "%s: has no %q: write it as %s", key, name, v.example)
		}
	}
	if len(r.problems) == before && v.check != nil {
		if err := v.check(to); err != nil {
			r.problem(n, "%s: %v", key, err)
		}
	}
}

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

// A list is what is told of the rules in [entries].
type list interface {
	names() []string
	named(name string) string
}

func (v entries[T]) names() (all []string) {
	for i := range *v.to {
		all = append(all, *v.name(&(*v.to)[i]))
	}
	return all
}

// named returns the entry of that name as the configuration writes it, "" if there is
// none.
func (v entries[T]) named(name string) string {
	if i := slices.Index(v.names(), name); i >= 0 {
		return v.text(i, true)
	}
	return ""
}

// text returns entry i as the configuration writes it; terse leaves out values that are
// the defaults.
func (v entries[T]) text(i int, terse bool) string {
	var defaults []option
	if terse {
		fresh := v.fresh()
		defaults = v.options(&fresh)
	}
	return optionsText(v.options(&(*v.to)[i]), defaults)
}

func (v entries[T]) schema() map[string]any {
	fresh := v.fresh()
	item := object{options: v.options(&fresh)}.schema()
	item["required"] = v.required
	return map[string]any{"type": "array", "items": item}
}

// byName is a value for each of several names.
type byName[T any] struct {
	to    *map[string]T
	value func(*T) value
	check func(name string) error // returns what is wrong with a name
}

func (v byName[T]) read(r *reader, key string, n ast.Node) {
	fields, ok := r.fields(n, key)
	if !ok {
		return
	}
	all := make(map[string]T, len(fields))
	for _, f := range fields {
		if err := v.check(f.name); err != nil {
			r.problems.Add(f.at, "%s: %v", key, err)
			continue
		}
		var one T
		r.value(key+"."+f.name, v.value(&one), f)
		all[f.name] = one
	}
	*v.to = all
}

func (v byName[T]) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*v.to)) {
		one := (*v.to)[name]
		all = append(all, name+": "+v.value(&one).String())
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (v byName[T]) schema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": v.value(new(T)).schema()}
}

// expressions are the expressions that give arguments their values.
func expressions(to *map[string]*expression.Program) value {
	return byName[*expression.Program]{to: to, check: argumentPath,
		value: func(p **expression.Program) value { return formula{p, expression.Any} }}
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
