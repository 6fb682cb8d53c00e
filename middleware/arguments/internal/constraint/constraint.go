// Package constraint reads the constraints of a JSON Schema that attache follows: which values a property
// accepts, and by which keywords the objects around it are constrained.
//
// It does not follow every keyword. In doubt it says that a value is not accepted, because a call that is
// valid must stay valid when a value is filled in; MayAllow and MayBeObject say yes in doubt.
package constraint

import (
	"bytes"
	"cmp"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Kinds is a set of JSON types.
type Kinds uint8

// The types. An integer is one of Numbers.
const (
	Texts Kinds = 1 << iota
	Numbers
	Booleans
	Objects
	Arrays
	Nulls
	// AnyKind has all of them.
	AnyKind = Texts | Numbers | Booleans | Objects | Arrays | Nulls
)

// kindOf maps the names of types in JSON Schema to kinds. For integers see NumberMisfit.
var kindOf = map[string]Kinds{
	"string": Texts, "number": Numbers, "integer": Numbers, "boolean": Booleans, "object": Objects, "array": Arrays, "null": Nulls,
}

// kindAt maps the first byte of a value to its kind, except for numbers.
var kindAt = map[byte]Kinds{'"': Texts, 't': Booleans, 'f': Booleans, '{': Objects, '[': Arrays, 'n': Nulls}

// Has reports whether a value is of one of the kinds.
func (k Kinds) Has(v *Value) bool { return k&v.kind() != 0 }

// A Value is a JSON value.
type Value struct {
	// JSON is the value itself.
	JSON []byte
	// Text is the text of a string. IsText says that the value is one.
	Text   string
	IsText bool
}

// kind returns the kind of the value.
// The JSON must not be empty.
func (v *Value) kind() Kinds { return cmp.Or(kindAt[v.JSON[0]], Numbers) }

// IsNumber reports whether the value is a number.
func (v *Value) IsNumber() bool { return v.kind() == Numbers }

// equals reports whether two values are equal. It compares strings without their escapes.
func (v *Value) equals(other wire.Value) bool {
	if v.IsText {
		return other.Equals(v.Text)
	}
	return bytes.Equal(v.JSON, other.Raw)
}

// A Schema is the schema of a property or, if inner is set, an alternative in the anyOf or oneOf of
// one. Only the alternatives of a property are followed, for schemas such as "string or null".
type Schema struct {
	wire.Value
	inner bool
}

// Types returns the kinds that the keyword type allows.
func (s Schema) Types() Kinds {
	kind := s.Get("type")
	if !kind.Exists() {
		return AnyKind
	}
	set := kindOf[kind.Text()]
	for k := range kind.Elements() {
		set |= kindOf[k.Text()]
	}
	return set
}

// Accepted returns the kinds of values that a property accepts, apart from limits on strings. A
// property with an enum accepts none; see Lists.
func (s Schema) Accepted() Kinds {
	if string(s.Raw) == "true" {
		return AnyKind
	}
	if !s.IsObject() {
		return 0
	}
	// Each keyword takes kinds away, and none adds any.
	set := s.Types()
	for m := range s.Members() {
		switch key := m.Key.Text(); key {
		case "enum", "const", "not", "if", "allOf", "$ref", "$dynamicRef", "$recursiveRef":
			return 0
		case "anyOf", "oneOf":
			if s.inner {
				return 0
			}
			set &= alternativeKinds(m.Value, key == "oneOf")
		}
	}
	return set
}

// alternativeKinds returns the kinds that one of the alternatives accepts and, with oneOf, no
// other alternative allows: a value that two of them accept is not valid.
func alternativeKinds(alternatives wire.Value, oneOf bool) (set Kinds) {
	var once, twice Kinds
	for e := range alternatives.Elements() {
		set |= Schema{e, true}.Accepted()
		allowed := Schema{e, true}.Types()
		twice |= once & allowed
		once |= allowed
	}
	// Only the types are compared. Two alternatives for strings may exclude each other by their patterns, which this does not
	// prove.
	if oneOf {
		set &^= twice
	}
	return set
}
