package arguments

import (
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// hasKeyword reports whether a property, or an alternative of it, has one of the keywords. Like
// acceptedKinds, it follows alternatives only if outer is set.
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

// listed reports whether a property lists a value in enum or const and allows it. Like
// acceptedKinds, it follows alternatives only if outer is set.
func listed(property wire.Value, v *value, outer bool) bool {
	found := false
	for m := range property.Members() {
		holds := true
		switch key := m.Key.Text(); key {
		case "enum":
			holds = containsValue(m.Value, v)
			found = true
		case "const":
			holds = v.sameAs(m.Value)
			found = true
		case "anyOf", "oneOf":
			holds = outer && listedByOne(m.Value, v, key == "oneOf")
			found = true
		case "type":
			holds = typesOf(property).has(v)
		case "not", "if", "allOf", "$ref", "$dynamicRef", "$recursiveRef":
			holds = false // not followed
		}
		if !holds {
			return false
		}
	}
	text, _ := v.text()
	limit := newLimit(property, false)
	return found && limit.refuses(text) == ""
}

// listedByOne reports whether an alternative lists the value and, with oneOf, no other
// alternative may allow it.
func listedByOne(alternatives wire.Value, v *value, oneOf bool) bool {
	n := 0
	for e := range alternatives.Elements() {
		switch {
		case listed(e, v, false):
			n++
		case oneOf && mayAllow(e, v):
			return false
		}
	}
	return n == 1 || n > 1 && !oneOf
}

// mayAllow reports whether a schema may allow a value, by its type, enum and const.
func mayAllow(schema wire.Value, v *value) bool {
	list, only := schema.Get("enum"), schema.Get("const")
	return typesOf(schema).has(v) && (!list.Exists() || containsValue(list, v)) && (!only.Exists() || v.sameAs(only))
}

func containsValue(array wire.Value, v *value) bool {
	for e := range array.Elements() {
		if v.sameAs(e) {
			return true
		}
	}
	return false
}

// sameAs reports whether two values are equal. It compares strings without their escapes.
func (v *value) sameAs(other wire.Value) bool {
	if text, ok := v.text(); ok {
		return other.Equals(text)
	}
	return v.equals(other)
}
