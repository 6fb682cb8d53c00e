package constraint

import (
	"math"
	"strconv"

	"github.com/attache-mcp/attache/proxy/wire"
)

// NumberMisfit returns why a property does not accept a number, "" if it does.
func NumberMisfit(property wire.Value, number *Value) (why string) {
	return numberMisfit(property, number.JSON, true)
}

// numberMisfit is NumberMisfit if outer is set. Like acceptedKinds, it follows alternatives only then.
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
		case key == "type" && math.Trunc(n) != n && (m.Value.Equals("integer") || Contains(m.Value, "integer") && !Contains(m.Value, "number")):
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
		if acceptedKinds(e, false)&Numbers == 0 {
			continue
		}
		if why = numberMisfit(e, number, false); why == "" {
			return ""
		}
	}
	return why
}
