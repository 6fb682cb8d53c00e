package constraint

import (
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// HasKeyword reports whether a property, or an alternative of it, has one of the keywords.
func (s Schema) HasKeyword(keywords ...string) bool {
	for m := range s.Members() {
		key := m.Key.Text()
		if slices.Contains(keywords, key) {
			return true
		}
		if s.inner || key != "anyOf" && key != "oneOf" {
			continue
		}
		for e := range m.Value.Elements() {
			if (Schema{e, true}).HasKeyword(keywords...) {
				return true
			}
		}
	}
	return false
}

// Lists reports whether a property lists a value in enum or const and allows it.
func (s Schema) Lists(v *Value) bool {
	found := false
	for m := range s.Members() {
		holds := true
		switch key := m.Key.Text(); key {
		case "enum":
			holds = containsValue(m.Value, v)
			found = true
		case "const":
			holds = v.equals(m.Value)
			found = true
		case "anyOf", "oneOf":
			holds = !s.inner && listedByOne(m.Value, v, key == "oneOf")
			found = true
		case "type":
			holds = s.Types().Has(v)
		case "not", "if", "allOf", "$ref", "$dynamicRef", "$recursiveRef":
			holds = false // not followed
		}
		if !holds {
			return false
		}
	}
	// The alternatives were checked above with their limits, which an inner schema leaves out.
	limit := Schema{s.Value, true}.Limit()
	return found && limit.Refuses(v.Text) == ""
}

// listedByOne reports whether an alternative lists the value and, with oneOf, no other
// alternative may allow it.
func listedByOne(alternatives wire.Value, v *Value, oneOf bool) bool {
	n := 0
	for e := range alternatives.Elements() {
		switch s := (Schema{e, true}); {
		case s.Lists(v):
			n++
		case oneOf && s.MayAllow(v):
			return false
		}
	}
	return n == 1 || n > 1 && !oneOf
}

// MayAllow reports whether a schema may allow a value, by its type, enum and const.
func (s Schema) MayAllow(v *Value) bool {
	list, only := s.Get("enum"), s.Get("const")
	return s.Types().Has(v) && (!list.Exists() || containsValue(list, v)) && (!only.Exists() || v.equals(only))
}

func containsValue(array wire.Value, v *Value) bool {
	for e := range array.Elements() {
		if v.equals(e) {
			return true
		}
	}
	return false
}
