package constraint

import (
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// HasKeyword reports whether a property, or an alternative of it, has one of the keywords.
func HasKeyword(property wire.Value, keywords ...string) bool {
	return hasKeyword(property, true, keywords...)
}

// hasKeyword is HasKeyword if outer is set. Like acceptedKinds, it follows alternatives only then.
func hasKeyword(property wire.Value, outer bool, keywords ...string) bool {
	for m := range property.Members() {
		key := m.Key.Text()
		if slices.Contains(keywords, key) {
			return true
		}
		if !outer || key != "anyOf" && key != "oneOf" {
			continue
		}
		for e := range m.Value.Elements() {
			if hasKeyword(e, false, keywords...) {
				return true
			}
		}
	}
	return false
}

// Lists reports whether a property lists a value in enum or const and allows it.
func Lists(property wire.Value, v *Value) bool { return listed(property, v, true) }

// listed is Lists if outer is set. Like acceptedKinds, it follows alternatives only then.
func listed(property wire.Value, v *Value, outer bool) bool {
	found := false
	for m := range property.Members() {
		holds := true
		switch key := m.Key.Text(); key {
		case "enum":
			holds = containsValue(m.Value, v)
			found = true
		case "const":
			holds = v.equals(m.Value)
			found = true
		case "anyOf", "oneOf":
			holds = outer && listedByOne(m.Value, v, key == "oneOf")
			found = true
		case "type":
			holds = TypesOf(property).Has(v)
		case "not", "if", "allOf", "$ref", "$dynamicRef", "$recursiveRef":
			holds = false // not followed
		}
		if !holds {
			return false
		}
	}
	limit := newLimit(property, false)
	return found && limit.Refuses(v.Text) == ""
}

// listedByOne reports whether an alternative lists the value and, with oneOf, no other
// alternative may allow it.
func listedByOne(alternatives wire.Value, v *Value, oneOf bool) bool {
	n := 0
	for e := range alternatives.Elements() {
		switch {
		case listed(e, v, false):
			n++
		case oneOf && MayAllow(e, v):
			return false
		}
	}
	return n == 1 || n > 1 && !oneOf
}

// MayAllow reports whether a schema may allow a value, by its type, enum and const.
func MayAllow(schema wire.Value, v *Value) bool {
	list, only := schema.Get("enum"), schema.Get("const")
	return TypesOf(schema).Has(v) && (!list.Exists() || containsValue(list, v)) && (!only.Exists() || v.equals(only))
}

func containsValue(array wire.Value, v *Value) bool {
	for e := range array.Elements() {
		if v.equals(e) {
			return true
		}
	}
	return false
}
