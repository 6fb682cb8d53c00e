package arguments

import (
	"slices"

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
		needed = needed || !admitsOnly(s.levels[i], s.r.Argument[i]) || minds(s.levels[i-1], key)
		nullable, ok := s.d.objects(s.levels[i-1], key)
		if !ok || nullable && needed || judgedWhole(s.levels[i-1], key) {
			s.failed = true
			return
		}
		if !needed {
			continue
		}
		outer := s.levels[i-1][0] // the one that the others hang on; objects has found one
		if outer.weight != must || outer.schema.Get("$ref").Exists() {
			s.failed = true
			return
		}
		s.join(outer.schema, "required", missingNames(outer.schema.Get("required"), []wire.Value{{Raw: append(append([]byte{'['}, wire.Quote(key)...), ']')}}))
	}
}

// admitsOnly reports whether an object is admitted that has no member but next: the
// argument, or the object on the way to it. Where that is not easy to tell it is not.
func admitsOnly(level []sub, next string) bool {
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

// minds reports whether an object may be admitted without a property of that name
// and refused with it, as far as that hangs on its name.
func minds(level []sub, name string) bool {
	declared := slices.ContainsFunc(level, func(f sub) bool {
		return f.weight == must && f.schema.Get("properties", name).Exists()
	})
	for i, f := range level {
		if f.minds(name, declared && i == 0) {
			return true
		}
	}
	return false
}

// minds is [minds] for one subschema. declared says that unevaluatedProperties finds
// the property declared.
func (f sub) minds(name string, declared bool) bool {
	for _, keyword := range []string{"maxProperties", "const", "enum", "propertyNames"} {
		if f.schema.Get(keyword).Exists() {
			return true
		}
	}
	for _, keyword := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		if f.schema.Get(keyword, name).Exists() {
			return true
		}
	}
	property := f.schema.Get("properties", name).Exists()
	switch {
	case patterned(f.schema, name),
		!property && closed(f.schema, "additionalProperties"),
		!property && !declared && closed(f.schema, "unevaluatedProperties"):
		return true
	case f.weight != turns:
		return false
	}
	return property || lists(f.schema.Get("required"), name) || depends(f.schema, name) || f.schema.Get("minProperties").Exists()
}

// judgedWhole reports whether a property of that name has to satisfy more than what
// the schemas of the level say of it under properties.
func judgedWhole(level []sub, name string) bool {
	return slices.ContainsFunc(level, func(f sub) bool {
		additional := f.schema.Get("additionalProperties")
		return f.schema.Get("const").Exists() || f.schema.Get("enum").Exists() || patterned(f.schema, name) ||
			additional.IsObject() && !f.schema.Get("properties", name).Exists()
	})
}

// objects reports whether the property key of an object can be nothing but an
// object, or else null.
func (d *document) objects(level []sub, key string) (nullable, ok bool) {
	set := d.kindsAt(level, key)
	return set&nulls != 0, set&^(objects|nulls) == 0
}

// kindsAt returns the types that the property key of an object may have, or more.
func (d *document) kindsAt(level []sub, key string) kinds {
	set := anyKind
	for _, f := range level {
		if property := f.schema.Get("properties", key); property.Exists() && f.weight == must {
			set &= d.kinds(property, 0)
		}
	}
	return set
}

// kinds returns the types that a value may have which satisfies a schema, or more.
func (d *document) kinds(schema wire.Value, depth int) kinds {
	if !d.onward(depth) || !schema.IsObject() {
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
