package arguments

import (
	"github.com/attache-mcp/attache/proxy/wire"
)

// demandParents has the objects around a nested argument required where a call
// without them would not do: the argument is always set, so they are always there,
// and what else they require would be missing. It fails where such an object may be
// null, or no object at all, in which the argument cannot be set.
func (s *step) demandParents() {
	needed := false
	for i := len(s.r.Argument) - 1; i > 0; i-- {
		key := s.r.Argument[i-1]
		needed = needed || !s.admitsOnly(s.levels[i], s.r.Argument[i])
		nullable, ok := s.objects(s.levels[i-1], key)
		if !ok || nullable && needed {
			s.failed = true
			return
		}
		if !needed {
			continue
		}
		outer := s.levels[i-1][0] // the one that the others hang on; objects has found one
		if outer.maybe || outer.schema.Get("$ref").Exists() {
			s.failed = true
			return
		}
		s.join(outer.schema, "required", missingNames(outer.schema.Get("required"), []wire.Value{{Raw: append(append([]byte{'['}, wire.Quote(key)...), ']')}}))
	}
}

// admitsOnly reports whether an object is admitted that has no member but next: the
// argument, or the object on the way to it. Where that is not easy to tell it is not.
func (s *step) admitsOnly(level []sub, next string) bool {
	for _, f := range level {
		for e := range f.schema.Get("required").Elements() {
			if !e.Equals(next) {
				return false
			}
		}
		for _, keyword := range []string{"minProperties", "const", "enum", "not", "if"} {
			if f.schema.Get(keyword).Exists() {
				return false
			}
		}
		// Of two that admit it, exactly one would have to.
		objectsOf := 0
		for e := range f.schema.Get("oneOf").Elements() {
			if !e.Get("type").Equals("null") {
				objectsOf++
			}
		}
		if objectsOf > 1 {
			return false
		}
	}
	return true
}

// objects reports whether the property key of an object can be nothing but an
// object, or else null.
func (s *step) objects(level []sub, key string) (nullable, ok bool) {
	set := anyKind
	for _, f := range level {
		if property := f.schema.Get("properties", key); property.Exists() && !f.maybe {
			set &= s.d.kinds(property, 0)
		}
	}
	return set&nulls != 0, set&^(objects|nulls) == 0
}

// kinds returns the types that a value may have which satisfies a schema, or more.
func (d *document) kinds(schema wire.Value, depth int) kinds {
	if !schema.IsObject() || depth > maxNesting {
		return anyKind
	}
	set := typesOf(schema)
	if target, ok := d.resolve(schema.Get("$ref")); ok {
		set &= d.kinds(target, depth+1)
	}
	for e := range schema.Get("allOf").Elements() {
		set &= d.kinds(e, depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var some kinds
		for e := range schema.Get(keyword).Elements() {
			some |= d.kinds(e, depth+1)
		}
		if schema.Get(keyword).Exists() {
			set &= some
		}
	}
	return set
}
