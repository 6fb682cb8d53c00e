package arguments

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A tool is what the upstream says of it in tools/list. The nil tool is one nothing
// is known of.
type tool struct {
	rules       []*rule // that are for it, or may be
	places      []place
	annotations []byte // kept only if an expression reads them
}

// A place is what a tool's schema says of the argument of a rule.
type place struct {
	rule     *rule
	state    state
	required bool
	takes    kinds
}

// A state says whether a schema has an argument.
type state uint8

const (
	unclear state = iota // it could not be found out
	absent
	present
)

// place returns what is known of a rule's argument.
func (t *tool) place(r *rule) place {
	if t != nil {
		for i := range t.places {
			if t.places[i].rule == r {
				return t.places[i]
			}
		}
	}
	return place{rule: r}
}

// fillable reports whether the argument may be filled by its rule, as far as that
// does not depend on the value.
func (p *place) fillable() bool {
	if p.rule.fact != "" {
		return p.state == present && p.takes&texts != 0
	}
	return p.state == present && p.takes != 0
}

// maxAnnotations is how long annotations may be; longer ones are none.
const maxAnnotations = 4 << 10

// read learns what one entry of tools/list says.
func (a *Arguments) read(entry wire.Value) (name string, t *tool) {
	name, t = entry.Get("name").Text(), &tool{}
	if said := entry.Get("annotations"); a.annotated && said.IsObject() && len(said.Raw) <= maxAnnotations {
		t.annotations = bytes.Clone(said.Raw)
	}
	d := document{root: entry.Get("inputSchema")}
	for i := range a.rules {
		r := &a.rules[i]
		named, err := r.names(name)
		if named || err != nil {
			t.rules = append(t.rules, r)
		}
		if named {
			t.places = append(t.places, d.place(r))
		}
	}
	return name, t
}

// place finds out what the schema says of a rule's argument.
func (d *document) place(r *rule) place {
	p := place{rule: r, state: absent}
	levels, whole := d.follow(r.Argument)
	if !whole {
		p.state = unclear
	}
	for _, s := range levels[len(levels)-1] {
		if property := s.schema.Get("properties", r.last()); property.Exists() && p.state != present {
			p.state, p.takes = present, d.takes(property)
		}
		if p.state == absent && patterned(s.schema, r.last()) {
			p.state = unclear
		}
		p.required = p.required || lists(s.schema.Get("required"), r.last())
	}
	return p
}

// lists reports whether an array has the string.
func lists(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if e.Equals(text) {
			return true
		}
	}
	return false
}

// kinds is a set of JSON types.
type kinds uint8

const (
	texts kinds = 1 << iota
	numbers
	booleans
	objects
	arrays
	nulls
	anyKind = texts | numbers | booleans | objects | arrays | nulls
)

// kindOf returns the type that a JSON Schema calls by that name. An integer is a
// number: whether a number is a whole one is for the server to see.
func kindOf(name wire.Value) kinds {
	for text, k := range map[string]kinds{
		"string": texts, "number": numbers, "integer": numbers, "boolean": booleans,
		"object": objects, "array": arrays, "null": nulls,
	} {
		if name.Equals(text) {
			return k
		}
	}
	return 0
}

// typesOf returns the types that a schema's keyword type allows.
func typesOf(schema wire.Value) kinds {
	kind := schema.Get("type")
	if !kind.Exists() {
		return anyKind
	}
	set := kindOf(kind)
	for k := range kind.Elements() {
		set |= kindOf(k)
	}
	return set
}

// has reports whether a value is of one of the types.
func (k kinds) has(v value) bool {
	if v.raw == nil {
		return k&texts != 0
	}
	switch v.raw[0] {
	case '"':
		return k&texts != 0
	case 't', 'f':
		return k&booleans != 0
	case '{':
		return k&objects != 0
	case '[':
		return k&arrays != 0
	case 'n':
		return k&nulls != 0
	}
	return k&numbers != 0
}

// takes returns the types of which a property can be any value. What is filled is
// no choice among words: that is not ours to make.
func (d *document) takes(property wire.Value) kinds {
	w := walk{d: d}
	w.visit(property, true, 0)
	set := anyKind
	for _, s := range w.found {
		switch {
		case s.maybe:
		case s.schema.Get("enum").Exists(), s.schema.Get("const").Exists():
			return 0
		default:
			set &= typesOf(s.schema)
		}
	}
	return set
}
