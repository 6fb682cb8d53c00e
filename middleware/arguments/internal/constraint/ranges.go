package constraint

import (
	"math"
	"strconv"

	"github.com/attache-mcp/attache/proxy/wire"
)

// NumberMisfit returns why a property does not accept a number, "" if it does.
func (s Schema) NumberMisfit(number *Value) (why string) {
	n, err := strconv.ParseFloat(string(number.JSON), 64)
	if err != nil {
		return "attache cannot read the number"
	}
	for m := range s.Members() {
		limit, err := strconv.ParseFloat(string(m.Value.Raw), 64)
		isNumber := err == nil
		switch key := m.Key.Text(); {
		case isNumber && (key == "minimum" && n < limit || key == "exclusiveMinimum" && n <= limit):
			return "the value is below the argument's " + key
		case isNumber && (key == "maximum" && n > limit || key == "exclusiveMaximum" && n >= limit):
			return "the value is above the argument's " + key
		case key == "type" && math.Trunc(n) != n && (m.Value.Equals("integer") || Contains(m.Value, "integer") && !Contains(m.Value, "number")):
			return "the argument takes integers only"
		case !s.inner && (key == "anyOf" || key == "oneOf"):
			if why := alternativesMisfit(m.Value, number); why != "" {
				return why
			}
		}
	}
	return ""
}

// alternativesMisfit returns why no alternative for numbers accepts a number, "" if one does or if
// there is none.
func alternativesMisfit(alternatives wire.Value, number *Value) (why string) {
	for e := range alternatives.Elements() {
		s := Schema{e, true}
		if s.Accepted()&Numbers == 0 {
			continue
		}
		if why = s.NumberMisfit(number); why == "" {
			return ""
		}
	}
	return why
}
