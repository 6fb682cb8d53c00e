package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// An Object is a value that has keys.
type Object struct {
	Options  []Option
	Required []string // the keys that it must have
	Example  string   // an object as the configuration writes it
}

func (v Object) String() string { return text(v.Options, nil) }

// Schema returns the schema of an object with these keys and no others.
func (v Object) Schema() map[string]any {
	properties := map[string]any{}
	for _, o := range v.Options {
		properties[o.Key] = described(o)
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if v.Required != nil {
		s["required"] = v.Required
	}
	return s
}

// EmptyAdvice returns what to do about a key without a value.
func (v Object) EmptyAdvice() string { return "write it as " + v.Example + ", or remove it" }

// Read reads the keys of n.
func (v Object) Read(r *Reader, key string, n ast.Node) {
	if has, ok := v.readKeys(r, key, n); ok {
		v.require(r, key, n, has)
	}
}

func (v Object) require(r *Reader, key string, n ast.Node, has map[string]bool) {
	for _, name := range v.Required {
		if !has[name] {
			r.AddProblem(n, "%s: has no %q: write it as %s", key, name, v.Example)
		}
	}
}

// readKeys reads n and returns the keys that it has. ok is false if n is not an object or has an
// unknown key.
func (v Object) readKeys(r *Reader, key string, n ast.Node) (has map[string]bool, ok bool) {
	fields, ok := r.Fields(n, key)
	has = map[string]bool{}
	for _, f := range fields {
		o, known := find(v.Options, f.Name)
		has[f.Name], ok = true, ok && known
		if known {
			r.readValue(key+"."+f.Name, o.Value, f)
		} else {
			r.Problems.Add(f.At, "%s: unknown key %q%s", key, f.Name, suggest(v.Options, "", f.Name))
		}
	}
	return has, ok
}

// ByName is a map from names to values of one kind.
type ByName[T any] struct {
	To    *map[string]T
	Value func(*T) Value          // returns the reader of one value
	Check func(name string) error // returns what is wrong with a name
	// Canonical returns the form in which a name is stored; nil stores it unchanged.
	Canonical func(name string) string
	// Pattern is a regular expression for the names in the schema; "" for none.
	Pattern string
}

// Read replaces the default with n.
func (v ByName[T]) Read(r *Reader, key string, n ast.Node) {
	fields, ok := r.Fields(n, key)
	if !ok {
		return
	}
	all := make(map[string]T, len(fields))
	for _, f := range fields {
		name := f.Name
		if v.Canonical != nil {
			name = v.Canonical(name)
		}
		err := v.Check(name)
		if _, twice := all[name]; twice {
			err = fmt.Errorf("%s appears twice: keep one", name)
		}
		if err != nil {
			r.Problems.Add(f.At, "%s: %v", key, err)
			continue
		}
		var one T
		r.readValue(key+"."+f.Name, v.Value(&one), f)
		all[name] = one
	}
	*v.To = all
}

func (v ByName[T]) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*v.To)) {
		one := (*v.To)[name]
		all = append(all, name+": "+v.Value(&one).String())
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// Schema returns the schema of an object with any keys.
func (v ByName[T]) Schema() map[string]any {
	s := map[string]any{"type": "object", "additionalProperties": v.Value(new(T)).Schema()}
	if v.Pattern != "" {
		s["propertyNames"] = map[string]any{"pattern": v.Pattern}
	}
	return s
}
