package expression

import (
	"encoding/json"
	"math"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	// maxDepth is how deep arguments may nest: as deep as a plain frame.
	maxDepth = 512
	// maxValues is how many values arguments may hold. Each takes some hundred
	// bytes while an expression reads it, and a frame may be 8 MiB of them.
	maxValues = 100_000
)

// A decoder makes CEL values of JSON that a scanner has accepted. Unlike
// encoding/json it tells integers from other numbers, is bounded in what it
// makes, and refuses a second member of the same name.
type decoder struct {
	in     []byte
	at     int
	values int
	depth  int
}

// decodeObject returns the members of a JSON object; nothing at all has none.
func decodeObject(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	d := decoder{in: raw}
	d.space()
	if d.peek() != '{' {
		return nil, ErrArguments
	}
	members, ok := d.object()
	if d.space(); !ok || d.at != len(d.in) {
		return nil, ErrArguments
	}
	return members, nil
}

func (d *decoder) peek() byte {
	if d.at < len(d.in) {
		return d.in[d.at]
	}
	return 0
}

func (d *decoder) space() {
	for d.at < len(d.in) && (d.in[d.at] == ' ' || d.in[d.at] == '\t' || d.in[d.at] == '\r' || d.in[d.at] == '\n') {
		d.at++
	}
}

// take skips white space and c, if it comes next.
func (d *decoder) take(c byte) bool {
	if d.space(); d.peek() != c {
		return false
	}
	d.at++
	return true
}

func (d *decoder) enter() bool {
	d.at++
	d.depth++
	return d.depth <= maxDepth
}

func (d *decoder) value() (ref.Val, bool) {
	if d.values++; d.values > maxValues {
		return nil, false
	}
	d.space()
	switch c := d.peek(); {
	case c == '"':
		s, ok := d.text()
		return types.String(s), ok
	case c == '{':
		m, ok := d.object()
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, m), ok
	case c == '[':
		l, ok := d.array()
		return types.NewRefValList(types.DefaultTypeAdapter, l), ok
	case c == '-' || isDigit(c):
		return d.number()
	case d.literal("true"):
		return types.True, true
	case d.literal("false"):
		return types.False, true
	case d.literal("null"):
		return types.NullValue, true
	}
	return nil, false
}

func (d *decoder) object() (map[string]any, bool) {
	m := map[string]any{}
	if !d.enter() {
		return nil, false
	}
	for first := true; !d.take('}'); first = false {
		if !first && !d.take(',') {
			return nil, false
		}
		d.space()
		key, ok := d.text()
		if _, twice := m[key]; !ok || twice || !d.take(':') {
			return nil, false
		}
		v, ok := d.value()
		if !ok {
			return nil, false
		}
		m[key] = v
	}
	d.depth--
	return m, true
}

func (d *decoder) array() ([]ref.Val, bool) {
	var l []ref.Val
	if !d.enter() {
		return nil, false
	}
	for first := true; !d.take(']'); first = false {
		if !first && !d.take(',') {
			return nil, false
		}
		v, ok := d.value()
		if !ok {
			return nil, false
		}
		l = append(l, v)
	}
	d.depth--
	return l, true
}

// text takes a string. A lone surrogate becomes U+FFFD.
func (d *decoder) text() (string, bool) {
	if d.peek() != '"' {
		return "", false
	}
	escaped := false
	for end := d.at + 1; end < len(d.in); end++ {
		switch d.in[end] {
		case '\\':
			escaped = true
			end++
		case '"':
			raw := d.in[d.at : end+1]
			d.at = end + 1
			if !escaped {
				return string(raw[1 : len(raw)-1]), true
			}
			var s string
			err := json.Unmarshal(raw, &s)
			return s, err == nil
		}
	}
	return "", false
}

// number takes an integer as one if 64 bits hold it, and any other number as a
// double. A number too great for a double is none.
func (d *decoder) number() (ref.Val, bool) {
	start, integer := d.at, true
	for ; d.at < len(d.in); d.at++ {
		switch c := d.in[d.at]; {
		case isDigit(c) || c == '-' && d.at == start:
			continue
		case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-':
			integer = false
			continue
		}
		break
	}
	text := string(d.in[start:d.at])
	if integer && text != "-0" {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(i), true
		}
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			return types.Uint(u), true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return types.Double(f), err == nil && !math.IsInf(f, 0)
}

func (d *decoder) literal(word string) bool {
	if len(d.in)-d.at < len(word) || string(d.in[d.at:d.at+len(word)]) != word {
		return false
	}
	d.at += len(word)
	return true
}
