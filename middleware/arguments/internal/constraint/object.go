package constraint

import (
	"regexp"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// MayBeObject reports whether a schema may accept an object.
func (s Schema) MayBeObject() bool {
	// This is the reverse of Accepted: a keyword that is not read here may accept an object.
	if s.Types()&Objects == 0 {
		return false
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if alternatives := s.Get(key); !s.inner && alternatives.IsArray() {
			accepted := false
			for e := range alternatives.Elements() {
				accepted = accepted || Schema{e, true}.MayBeObject()
			}
			return accepted
		}
	}
	return true
}

// OtherKeyword returns a keyword by which a schema constrains an object other than through
// its properties, "" if there is none. inner means that the object is the value of a property;
// its type must then be "object".
func OtherKeyword(schema wire.Value, inner bool) string {
	if !schema.IsObject() || inner && !schema.Get("type").Equals("object") {
		return "type"
	}
	for m := range schema.Members() {
		switch key := m.Key.Text(); key {
		case "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
			"dependentRequired", "dependentSchemas", "dependencies", "patternProperties", "propertyNames",
			"minProperties", "maxProperties", "unevaluatedProperties", "const", "enum":
			return key
		}
	}
	return ""
}

var reference = sync.OnceValue(func() *regexp.Regexp {
	// The text is searched and not the tree: a reference counts wherever it is, also where it would be data.
	return regexp.MustCompile(`"\$(?:ref|dynamicRef|recursiveRef)"\s*:\s*"([^"]*)"`)
})

// References reports whether a reference in a schema may refer to the argument with that
// name or to an object around it, and whether one refers to another document. One to a definition, or
// to a property that surely has another name, does not; escapes may spell any name.
func References(schema []byte, name string) (around, outside bool) {
	for _, m := range reference().FindAllSubmatch(schema, -1) {
		to := string(m[1])
		if !strings.HasPrefix(to, "#") {
			outside = true
			continue
		}
		property, of := strings.CutPrefix(to, "#/properties/")
		property, _, _ = strings.Cut(property, "/")
		elsewhere := of && property != name && !strings.ContainsAny(property, `%~\`)
		around = around || !elsewhere && !strings.HasPrefix(to, "#/$defs/") && !strings.HasPrefix(to, "#/definitions/")
	}
	return around, outside
}

// Contains reports whether an array contains the string.
func Contains(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if e.Equals(text) {
			return true
		}
	}
	return false
}

// ContainsOnly reports whether an array contains nothing but that string.
func ContainsOnly(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if !e.Equals(text) {
			return false
		}
	}
	return true
}
