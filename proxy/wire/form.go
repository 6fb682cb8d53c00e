package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
)

// HasForm reports whether a frame for which LookEnvelope returned true has the form of a
// JSON-RPC message: jsonrpc is "2.0", the members that JSON-RPC defines have values of
// the right type, and a result has an id. HasForm checks strings and numbers among them,
// but only the first bytes of an object or array and no other members, because reading a
// large result would cost more than relaying it. For a frame with an ambiguity, only
// jsonrpc is checked. An array has the form if one of its members has, or may be the reply
// to a call.
func (m *Message) HasForm() bool {
	if m.kind == Batch {
		return m.hasMessage()
	}
	if v := m.at(slotVersion); string(v.Raw) != `"2.0"` && !v.Equals("2.0") {
		return false
	}
	if m.ambiguity != 0 {
		return true
	}
	switch m.kind {
	case Request, Notification:
		// JSON-RPC also allows an array of params.
		params := m.at(slotParams)
		return m.at(slotMethod).IsString() && m.hasID() && validStart(m.at(slotMethod).Raw) &&
			(!params.Exists() || params.IsNull() || isNested(params.Raw) && validStart(params.Raw))
	case Result: // of any type: JSON-RPC leaves it to the method
		return m.at(slotID).Exists() && m.hasID() && validStart(m.at(slotResult).Raw)
	case Error:
		failure := m.at(slotError).Raw
		return m.hasID() && isNested(failure) && failure[0] == '{' && validStart(failure)
	}
	return false
}

// hasMessage reports whether a member of the array is a message, or a reply.
func (m *Message) hasMessage() bool {
	for member := range m.Messages() {
		if member.kind != Batch && (member.HasForm() || member.kind.IsReply() && member.at(slotID).Exists()) {
			return true
		}
	}
	return false
}

// hasID reports whether the frame has no id, or an id that is valid JSON. Any type will do:
// a client that uses unusual ids gets them back in replies.
func (m *Message) hasID() bool {
	id := m.at(slotID)
	return !id.Exists() || validStart(id.Raw)
}

func isNested(raw []byte) bool { return raw[0] == '{' || raw[0] == '[' }

// validStart reports whether a raw value is valid JSON, as far as HasForm looks. The value came out of
// skip.Value, so it is not empty, and an object or array has its last bracket.
func validStart(raw []byte) bool {
	switch raw[0] {
	case '{':
		next := raw[skip.Space(raw, 1)]
		return next == '"' || next == '}'
	case '[':
		next := raw[skip.Space(raw, 1)]
		return next == '"' || next == ']' || bytes.IndexByte([]byte(`{[-0123456789tfn`), next) >= 0
	}
	if raw[0] == '"' && isBare(raw) || raw[0] != '"' && validID(raw) {
		return true
	}
	return utf8.Valid(raw) && json.Valid(raw)
}

// isBare reports whether a raw string is ASCII without escapes, as most ids and methods
// are.
func isBare(raw []byte) bool {
	if len(raw) < 2 || raw[len(raw)-1] != '"' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c > '~' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}
