package expression

import (
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// appendJSON appends v as JSON, the members of a map in the order of their
// names. ok is false for what JSON has no value for.
func appendJSON(out []byte, v ref.Val) (_ []byte, ok bool) {
	switch v := v.(type) {
	case types.Null:
		return append(out, "null"...), true
	case types.Bool:
		return strconv.AppendBool(out, bool(v)), true
	case types.Int:
		return strconv.AppendInt(out, int64(v), 10), true
	case types.Uint:
		return strconv.AppendUint(out, uint64(v), 10), true
	case types.Double:
		return appendDouble(out, float64(v))
	case types.String:
		return appendString(out, string(v)), true
	case traits.Mapper:
		return appendMap(out, v)
	case traits.Lister:
		return appendList(out, v)
	}
	return out, false
}

func appendDouble(out []byte, f float64) ([]byte, bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return out, false
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(out, f, format, -1, 64), true
}

func appendList(out []byte, l traits.Lister) (_ []byte, ok bool) {
	out = append(out, '[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		if out, ok = appendJSON(out, it.Next()); !ok {
			return out, false
		}
	}
	return append(out, ']'), true
}

func appendMap(out []byte, m traits.Mapper) (_ []byte, ok bool) {
	var keys []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return out, false
		}
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, key), ':')
		if out, ok = appendJSON(out, m.Get(types.String(key))); !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}
