package callid

import (
	"bytes"
	"math"
	"strconv"

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

// maxExact is the largest number up to which floating point keeps every integer.
const maxExact = 1<<53 - 1

// OfReply returns the id of a message, nil if it has none that a reply can be found by. Some
// servers, such as those in Godot or with Gson, keep numbers in floating point and answer request
// 1 as 1.0. If awaits reports that the integer is the id of a request, OfReply writes the integer
// into the reply: rules then apply to it, and clients that accept only integers can read it.
func OfReply(m *wire.Message, awaits func(id []byte) bool) []byte {
	if id := m.ID(); id != nil || !m.Kind().IsReply() {
		return id
	}
	raw := m.Get("id").Raw
	if !IsFraction(raw) {
		return nil
	}
	n, ok := Number(raw)
	if !ok || n != math.Trunc(n) || math.Abs(n) > maxExact {
		return nil
	}
	// A reply that no request waits for passes as it is. Set fails for a frame that is not plain.
	id := strconv.AppendInt(nil, int64(n), 10)
	if !awaits(id) || m.Set(id, "id") != nil {
		return nil
	}
	return m.ID()
}
