package expression

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/tidwall/gjson"
)

const (
	// maxDepth is the maximum nesting of arguments. It is the same as that of a plain frame.
	maxDepth = 512
	// maxValues is the maximum number of values in arguments. Each takes some hundred bytes of
	// memory, and a frame may have 8 MiB of values.
	maxValues = 100_000
)

// A decoder converts JSON to CEL values. Unlike encoding/json it distinguishes integers from
// other numbers, bounds the number of values, and refuses duplicate members.
type decoder struct{ values int }

// decodeObject returns the members of a JSON object; an empty input has none.
func decodeObject(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	// gjson accepts any text, so its results are right only for a text that ValidBytes accepts.
	object := gjson.ParseBytes(raw)
	if !object.IsObject() || !gjson.ValidBytes(raw) {
		return nil, ErrArguments
	}
	members, ok := new(decoder).object(object, 1)
	if !ok {
		return nil, ErrArguments
	}
	return members, nil
}

func (d *decoder) value(v gjson.Result, depth int) (ref.Val, bool) {
	if d.values++; d.values > maxValues {
		return nil, false
	}
	switch v.Type {
	case gjson.String:
		s, ok := text(v.Raw)
		return types.String(s), ok
	case gjson.Number:
		return number(v.Raw)
	case gjson.JSON:
		if v.IsArray() {
			l, ok := d.array(v, depth+1)
			return types.NewRefValList(types.DefaultTypeAdapter, l), ok
		}
		m, ok := d.object(v, depth+1)
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, m), ok
	case gjson.Null:
		return types.NullValue, true
	}
	return types.Bool(v.Type == gjson.True), true
}

func (d *decoder) object(v gjson.Result, depth int) (m map[string]any, ok bool) {
	m, ok = map[string]any{}, depth <= maxDepth
	if !ok {
		return nil, false
	}
	v.ForEach(func(key, value gjson.Result) bool {
		name, valid := text(key.Raw)
		_, twice := m[name]
		if ok = valid && !twice; ok {
			m[name], ok = d.value(value, depth)
		}
		return ok
	})
	return m, ok
}

func (d *decoder) array(v gjson.Result, depth int) (l []ref.Val, ok bool) {
	if depth > maxDepth {
		return nil, false
	}
	ok = true
	v.ForEach(func(_, value gjson.Result) bool {
		var element ref.Val
		element, ok = d.value(value, depth)
		l = append(l, element)
		return ok
	})
	return l, ok
}

// text returns the value of a JSON string. A lone surrogate becomes U+FFFD; gjson
// would drop the character after it. The value is a clone, so that it does not keep all of the
// arguments in memory, of which raw is a part.
func text(raw string) (s string, ok bool) {
	if !strings.Contains(raw, `\`) {
		return strings.Clone(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal([]byte(raw), &s)
	return s, err == nil
}

// number returns integers of up to 64 bits as integers, and all other numbers as doubles. A
// number that is too large for a double is an error. CEL compares the three types by value. Examples:
//
//	7                       int 7
//	18446744073709551615    uint, because it is larger than any int
//	1.0, 1e3, -0            double
//	1e400                   an error
func number(raw string) (ref.Val, bool) {
	if !strings.ContainsAny(raw, ".eE") && raw != "-0" {
		if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return types.Int(i), true
		}
		if u, err := strconv.ParseUint(raw, 10, 64); err == nil {
			return types.Uint(u), true
		}
	}
	f, err := strconv.ParseFloat(raw, 64)
	return types.Double(f), err == nil && !math.IsInf(f, 0)
}

// encode returns v as JSON. It fails for numbers that JSON cannot represent.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // keep & in URLs readable
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// native converts v to a value for encoding/json. ok is false if JSON has nothing like it: a time, a
// duration, bytes, a type, or a map with a key that is not a string. For an infinite number encode
// returns an error.
func native(v ref.Val) (_ any, ok bool) {
	switch v := v.(type) {
	case types.Null:
		return nil, true
	case types.Bool, types.Int, types.Uint, types.Double, types.String:
		return v, true
	case traits.Mapper:
		members := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key, isText := it.Next().(types.String)
			if !isText {
				return nil, false
			}
			if members[string(key)], ok = native(v.Get(key)); !ok {
				return nil, false
			}
		}
		return members, true
	case traits.Lister:
		elements := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			element, ok := native(it.Next())
			if !ok {
				return nil, false
			}
			elements = append(elements, element)
		}
		return elements, true
	}
	return nil, false
}
