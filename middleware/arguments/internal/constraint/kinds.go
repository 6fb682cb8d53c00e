package constraint

import "github.com/attache-mcp/attache/proxy/wire"

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

// TypesOf returns the kinds that a schema's keyword type allows.
func TypesOf(schema wire.Value) Kinds {
	kind := schema.Get("type")
	if !kind.Exists() {
		return AnyKind
	}
	set := kindOf[kind.Text()]
	for k := range kind.Elements() {
		set |= kindOf[k.Text()]
	}
	return set
}

// Has reports whether a value is of one of the kinds.
func (k Kinds) Has(v *Value) bool { return k&v.kind() != 0 }

// Accepted returns the kinds of values that a property accepts, apart from limits on strings. A
// property with an enum accepts none; see Lists.
func Accepted(property wire.Value) Kinds { return acceptedKinds(property, true) }

// acceptedKinds is Accepted if outer is set. Alternatives are followed only then, for schemas such as
// "string or null".
func acceptedKinds(property wire.Value, outer bool) Kinds {
	if string(property.Raw) == "true" {
		return AnyKind
	}
	if !property.IsObject() {
		return 0
	}
	set := TypesOf(property)
	for m := range property.Members() {
		switch key := m.Key.Text(); key {
		case "enum", "const", "not", "if", "allOf", "$ref", "$dynamicRef", "$recursiveRef":
			return 0
		case "anyOf", "oneOf":
			if !outer {
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
		set |= acceptedKinds(e, false)
		allowed := TypesOf(e)
		twice |= once & allowed
		once |= allowed
	}
	if oneOf {
		set &^= twice
	}
	return set
}
