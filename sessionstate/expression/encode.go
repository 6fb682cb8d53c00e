package expression

import (
	"bytes"
	"encoding/json"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// encode returns v as JSON. It fails for numbers that JSON cannot represent.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // keep & in URLs readable
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// native converts v to a value for encoding/json. ok is false if JSON cannot represent it.
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
