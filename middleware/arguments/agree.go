package arguments

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// agree returns a schema as the rule has it shown. ok is false if there is no way to
// do it that keeps the two in step: what the shown schema admits, without the
// argument, the upstream's has to admit with it, as the call will be sent.
//
// The work is done in steps, each on the text that the step before has left. It
// turns on three things. A subschema that has to hold may lose the argument: for
// what the upstream demands of its value it is the operator who answers. One that
// may hold (see [sub]) may lose it only if that does not change when it holds. And
// what is edited may serve nothing but the object in question: a definition that
// others refer to is left alone.
func agree(schema []byte, r *rule) (shown []byte, ok bool) {
	s := step{r: r, text: schema}
	s.run((*step).hoist)
	s.run((*step).remove)
	if r.Mode == Pin || r.Mode == Fill && r.Schema == Hide {
		s.run((*step).demandParents)
	}
	return s.text, !s.failed
}

// A step is one pass over a schema.
type step struct {
	r      *rule
	text   []byte
	failed bool

	d       document
	levels  [][]sub
	through []int
	edits   []wire.Splice
}

// run makes one pass.
func (s *step) run(pass func(*step)) {
	if s.failed {
		return
	}
	s.d, s.edits = document{root: wire.Value{Raw: s.text}}, nil
	if !s.look() {
		s.failed = true
		return
	}
	pass(s)
	if s.failed = s.failed || !s.alone(); !s.failed {
		s.text, s.failed = splice(s.text, s.edits)
	}
}

// look finds the subschemas on the way to the argument. A schema that applies at
// two places of the way would be edited for both.
func (s *step) look() bool {
	s.levels, s.through = nil, nil
	seen := map[int]bool{}
	for i := range s.r.Argument {
		w := walk{d: &s.d}
		if i == 0 {
			w.visit(s.d.root, must, 0)
		} else {
			for _, outer := range s.levels[i-1] {
				w.visit(outer.schema.Get("properties", s.r.Argument[i-1]), outer.weight, 0)
			}
		}
		if w.lost {
			return false
		}
		for _, f := range w.found {
			if seen[f.schema.Off] {
				return false
			}
			seen[f.schema.Off] = true
		}
		s.levels, s.through = append(s.levels, w.found), append(s.through, w.through...)
	}
	return true
}

// alone reports whether the edits touch nothing that is referred to from elsewhere.
func (s *step) alone() bool {
	if len(s.edits) == 0 {
		return true
	}
	all, clear := s.d.references()
	if !clear {
		return false
	}
	for _, ref := range all {
		if slices.Contains(s.through, ref.from) {
			continue
		}
		start, end := ref.target.Off, ref.target.Off+len(ref.target.Raw)
		for _, e := range s.edits {
			gone := e.Off <= ref.from && ref.from < e.Off+e.Len
			if !gone && e.Off < end && (e.Off > start || e.Off+e.Len > start) {
				return false
			}
		}
	}
	return true
}

// splice makes the edits. failed is true if they overlap.
func splice(text []byte, edits []wire.Splice) (out []byte, failed bool) {
	slices.SortStableFunc(edits, func(x, y wire.Splice) int {
		return cmp.Or(cmp.Compare(x.Off, y.Off), cmp.Compare(min(x.Len, 1), min(y.Len, 1)))
	})
	from := 0
	for _, e := range edits {
		if e.Off < from {
			return text, true
		}
		out = append(append(out, text[from:e.Off]...), e.Text...)
		from = e.Off + e.Len
	}
	return append(out, text[from:]...), false
}

// innermost returns the subschemas of the object that holds the argument.
func (s *step) innermost() []sub { return s.levels[len(s.levels)-1] }

func (s *step) edit(e ...wire.Splice) { s.edits = append(s.edits, e...) }

func (s *step) is(m wire.Member) bool { return m.Key.Equals(s.r.last()) }

// hoist makes what depends on the argument unconditional, as the argument will
// always be there: its dependentRequired joins required, and its dependentSchemas
// allOf. Of an argument that is forbidden, and so never there, nothing depends.
func (s *step) hoist() {
	for _, f := range s.innermost() {
		var names, schemas []wire.Value
		for _, keyword := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
			on := f.schema.Get(keyword)
			dependent := on.Get(s.r.last())
			switch {
			case !dependent.Exists():
				continue
			case dependent.IsArray():
				names = append(names, dependent)
			default:
				schemas = append(schemas, dependent)
			}
			s.edit(wire.RemoveMembers(on, s.is)...)
		}
		if s.r.Mode != Forbid {
			s.join(f.schema, "required", missingNames(f.schema.Get("required"), names))
			s.join(f.schema, "allOf", raws(schemas))
		}
	}
}

// missingNames returns the strings in lists that are not in the array required.
func missingNames(required wire.Value, lists_ []wire.Value) (out [][]byte) {
	seen := map[string]bool{}
	for e := range required.Elements() {
		seen[e.Text()] = true
	}
	for _, list := range lists_ {
		for e := range list.Elements() {
			if name := e.Text(); !seen[name] {
				seen[name] = true
				out = append(out, e.Raw)
			}
		}
	}
	return out
}

func raws(values []wire.Value) (out [][]byte) {
	for _, v := range values {
		out = append(out, v.Raw)
	}
	return out
}

// join appends elements to an array that is a member of a schema, and adds the
// member if it is not there.
func (s *step) join(schema wire.Value, key string, elements [][]byte) {
	if len(elements) == 0 {
		return
	}
	text := bytes.Join(elements, []byte{','})
	array := schema.Get(key)
	switch {
	case !array.Exists():
		s.edit(wire.AddMember(schema, key, slices.Concat([]byte{'['}, text, []byte{']'})))
	case !array.IsArray():
		s.failed = true
	default:
		for range array.Elements() {
			text = append([]byte{','}, text...)
			break
		}
		s.edit(wire.Splice{Off: array.Off + len(array.Raw) - 1, Text: text})
	}
}

// remove takes the argument out of what is required, and where the rule hides it,
// out of the properties.
func (s *step) remove() {
	for _, f := range s.innermost() {
		if !s.removable(f) {
			s.failed = true
			return
		}
		if s.r.Schema == Hide {
			s.edit(wire.RemoveMembers(f.schema.Get("properties"), s.is)...)
		}
		s.unrequire(f.schema)
	}
}

// removable reports whether the argument can leave the subschema.
func (s *step) removable(f sub) bool {
	name := s.r.last()
	if s.r.Mode == Forbid {
		// The argument is never there. What asks for it never holds, which is for
		// the operator to have wanted where it has to hold; where it may, it decides.
		return !(f.weight != must && lists(f.schema.Get("required"), name)) && !depends(f.schema, name)
	}
	property := f.schema.Get("properties", name)
	decisive := []string{"maxProperties", "const", "enum", "propertyNames"}
	if s.r.Schema == Hide || f.weight == turns {
		decisive = append(decisive, "minProperties")
	}
	for _, keyword := range decisive {
		if f.schema.Get(keyword).Exists() {
			return false
		}
	}
	if patterned(f.schema, name) {
		return false
	}
	if !property.Exists() && (closed(f.schema, "additionalProperties") || closed(f.schema, "unevaluatedProperties") && !s.declared(f.schema)) {
		return false // it never admits the argument
	}
	return f.weight == must || s.r.certain(property)
}

// patterned reports whether a name may match a pattern of the schema's
// patternProperties. A pattern is the upstream's; package regexp takes time linear
// in its input, and what it does not know may match.
func patterned(schema wire.Value, name string) bool {
	for m := range schema.Get("patternProperties").Members() {
		if r, err := regexp.Compile(m.Key.Text()); err != nil || r.MatchString(name) {
			return true
		}
	}
	return false
}

// closed reports whether a schema restricts the properties it does not name.
func closed(schema wire.Value, keyword string) bool {
	v := schema.Get(keyword)
	return v.Exists() && string(v.Raw) != "true"
}

// declared reports whether a schema names the argument itself, or by a subschema
// that has to hold with it: unevaluatedProperties sees no further.
func (s *step) declared(schema wire.Value) bool {
	w := walk{d: &s.d}
	w.visit(schema, must, 0)
	return slices.ContainsFunc(w.found, func(f sub) bool {
		return f.weight == must && f.schema.Get("properties", s.r.last()).Exists()
	})
}

// certain reports whether every value of the rule satisfies the schema of a
// property.
func (r *rule) certain(property wire.Value) bool {
	if !property.Exists() || string(property.Raw) == "true" {
		return true
	}
	if !property.IsObject() {
		return false
	}
	for m := range property.Members() {
		switch m.Key.Text() {
		case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		case "type":
			if r.fact == "" && typesOf(property) != anyKind || !typesOf(property).has(value{}) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// depends reports whether other properties depend on the one of that name.
func depends(schema wire.Value, name string) bool {
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		for m := range schema.Get(keyword).Members() {
			if lists(m.Value, name) {
				return true
			}
		}
	}
	return false
}

// unrequire takes the argument out of required, and of what others require with
// them.
func (s *step) unrequire(schema wire.Value) {
	named := func(e wire.Value) bool { return e.Equals(s.r.last()) }
	required := schema.Get("required")
	left := false
	for e := range required.Elements() {
		left = left || !named(e)
	}
	switch {
	case !lists(required, s.r.last()):
	case left:
		s.edit(wire.RemoveElements(required, named)...)
	default:
		// An empty "required" is an error in older dialects.
		s.edit(wire.RemoveMembers(schema, func(m wire.Member) bool { return m.Key.Equals("required") })...)
	}
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		for m := range schema.Get(keyword).Members() {
			s.edit(wire.RemoveElements(m.Value, named)...)
		}
	}
}
