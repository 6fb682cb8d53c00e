package arguments

import (
	"math"
	"strconv"

	"github.com/attache-mcp/attache/proxy/wire"
)

// isNumber reports whether the value is a number. The value must not be empty. kindAt has all other
// values, by their first byte.
func (v *value) isNumber() bool { return v.raw != nil && kindAt[v.raw[0]] == 0 }

// numberMisfit returns why a property does not accept a number, "" if it does. Like acceptedKinds,
// it follows alternatives only if outer is set.
func numberMisfit(property wire.Value, number []byte, outer bool) (why string) {
	n, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return "attache cannot read the number"
	}
	for m := range property.Members() {
		limit, err := strconv.ParseFloat(string(m.Value.Raw), 64)
		isNumber := err == nil
		switch key := m.Key.Text(); {
		case isNumber && (key == "minimum" && n < limit || key == "exclusiveMinimum" && n <= limit):
			return "the value is below the argument's " + key
		case isNumber && (key == "maximum" && n > limit || key == "exclusiveMaximum" && n >= limit):
			return "the value is above the argument's " + key
		case key == "type" && math.Trunc(n) != n && (m.Value.Equals("integer") || contains(m.Value, "integer") && !contains(m.Value, "number")):
			return "the argument takes integers only"
		case outer && (key == "anyOf" || key == "oneOf"):
			if why := alternativesMisfit(m.Value, number); why != "" {
				return why
			}
		}
	}
	return ""
}

// alternativesMisfit returns why no alternative for numbers accepts a number, "" if one does or if
// there is none.
func alternativesMisfit(alternatives wire.Value, number []byte) (why string) {
	for e := range alternatives.Elements() {
		if acceptedKinds(e, false)&numbers == 0 {
			continue
		}
		if why = numberMisfit(e, number, false); why == "" {
			return ""
		}
	}
	return why
}
