package callid

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/wire"
)

// HasOneID reports whether a request has exactly one member "id", and that is a string or a
// number.
func HasOneID(request wire.Value) bool {
	ids, known := 0, false
	for m := range request.Members() {
		if m.Key.Equals("id") {
			ids++
			known = m.Value.IsString() || m.Value.Raw[0] == '-' || m.Value.Raw[0] >= '0' && m.Value.Raw[0] <= '9'
		}
	}
	return ids == 1 && known
}

// IsFraction reports whether a raw id is a number with a fraction or an exponent, such as 1.0. If
// rules enforce, the relay refuses such a request with an error whose id is null.
func IsFraction(raw []byte) bool {
	return len(raw) > 0 && raw[0] != '"' && bytes.ContainsAny(raw, ".eE")
}
