package arguments

import (
	"bytes"
	"slices"

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
	required bool // in the object around it
	takes    kinds
	tied     bool // a call may be admitted without it and refused with it, whatever its value
	demanded bool // the objects around it are required too
	sparse   bool // the objects around it may be made with nothing else in them
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
	if p.tied {
		return false
	}
	if p.rule.fact != "" {
		return p.state == present && p.takes&texts != 0
	}
	return p.state == present && p.takes != 0
}

const textOtherType = "the argument does not take any value of that type"

// unfillable returns why a call with these arguments is not to be filled by the rule,
// "" if it may be: what was a good call without the argument has to be one with it.
func (p *place) unfillable(args wire.Value) (why string) {
	switch {
	case p.state != present:
		return "the tool's schema does not have the argument"
	case p.tied:
		return "in the tool's schema it decides what else may be given"
	case !p.sparse && !p.rule.around(args):
		return "the object around it is not there, and by the tool's schema is not to be made for it"
	case !p.fillable():
		return textOtherType
	}
	return ""
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
		property := s.schema.Get("properties", r.last())
		switch {
		case !property.Exists():
		case p.state != present:
			p.state, p.takes = present, d.takes(property, 0)
		case s.weight == must:
			p.takes &= d.takes(property, 0)
		}
		if p.state == absent && patterned(s.schema, r.last()) {
			p.state = unclear
		}
		p.required = p.required || s.weight == must && d.requires(s.schema, r.last())
	}
	if r.Mode == Fill && p.state == present {
		d.surroundings(&p, levels)
	}
	return p
}

// surroundings finds out when an argument may be filled without harm to a call that
// was good without it.
func (d *document) surroundings(p *place, levels [][]sub) {
	inner := len(levels) - 1
	p.tied = minds(levels[inner], p.rule.last()) || slices.ContainsFunc(levels[inner], func(s sub) bool {
		return s.weight != must && !p.rule.certain(s.schema.Get("properties", p.rule.last()))
	})
	p.demanded, p.sparse = true, inner == 0 || !p.tied
	if p.required {
		p.tied = false // an object without it is not good
	}
	for i, key := range p.rule.Argument[:inner] {
		p.tied = p.tied || judgedWhole(levels[i], key)
		p.demanded = p.demanded && slices.ContainsFunc(levels[i], func(s sub) bool {
			return s.weight == must && lists(s.schema.Get("required"), key)
		})
		p.sparse = p.sparse && d.kindsAt(levels[i], key)&objects != 0 &&
			admitsOnly(levels[i+1], p.rule.Argument[i+1]) && !minds(levels[i], key)
	}
}

// around reports whether the call has the object that the argument stands in.
func (r *rule) around(args wire.Value) bool {
	return args.Get(r.Argument[:len(r.Argument)-1]...).IsObject()
}

// requires reports whether an object that satisfies the schema s has a property of
// that name: it, or each of its alternatives, lists it as required.
func (d *document) requires(s wire.Value, name string) bool {
	listed := func(f sub) bool { return f.weight == must && lists(f.schema.Get("required"), name) }
	each := func(alternative wire.Value) bool {
		w := walk{d: d}
		w.visit(alternative, must, 0)
		return slices.ContainsFunc(w.found, listed)
	}
	return listed(sub{schema: s}) || every(s.Get("anyOf"), each) || every(s.Get("oneOf"), each)
}

// every reports whether an array has elements and all of them are as asked.
func every(array wire.Value, is func(wire.Value) bool) bool {
	some := false
	for e := range array.Elements() {
		if !is(e) {
			return false
		}
		some = true
	}
	return some
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
func (d *document) takes(property wire.Value, depth int) kinds {
	switch {
	case !d.onward(depth):
		return 0
	case string(property.Raw) == "true":
		return anyKind
	case !property.IsObject():
		return 0
	}
	set := typesOf(property)
	for m := range property.Members() {
		switch m.Key.Text() {
		case "enum", "const", "not", "if":
			return 0
		case "$ref":
			target, _ := d.resolve(m.Value)
			set &= d.takes(target, depth+1)
		case "allOf":
			for e := range m.Value.Elements() {
				set &= d.takes(e, depth+1)
			}
		case "anyOf":
			set &= d.taken(m.Value, depth, false)
		case "oneOf":
			set &= d.taken(m.Value, depth, true)
		}
	}
	return set
}

// taken returns the types of which any value satisfies one of the alternatives, and
// if only one of them may hold, no other.
func (d *document) taken(alternatives wire.Value, depth int, one bool) (set kinds) {
	var seen, twice kinds
	for e := range alternatives.Elements() {
		set |= d.takes(e, depth+1)
		may := d.kinds(e, depth+1)
		twice |= seen & may
		seen |= may
	}
	if one {
		set &^= twice
	}
	return set
}
