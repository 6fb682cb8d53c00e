package callid

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/wire"
)

// InOne reports whether a request that readers may differ about has one id, which is a string
// or a number.
func InOne(request wire.Value) bool {
	ids, known := 0, false
	for m := range request.Members() {
		if m.Key.Equals("id") {
			ids++
			known = m.Value.IsString() || m.Value.Raw[0] == '-' || m.Value.Raw[0] >= '0' && m.Value.Raw[0] <= '9'
		}
	}
	return ids == 1 && known
}

// IsFraction reports whether a raw id is a number in a form that no integer has, such as 1.0. A
// relay whose rules enforce refuses its request, and names no id.
func IsFraction(raw []byte) bool {
	return len(raw) > 0 && raw[0] != '"' && bytes.ContainsAny(raw, ".eE")
}
