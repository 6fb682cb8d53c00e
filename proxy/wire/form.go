package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// HasForm reports whether a frame that LookEnvelope took for a message has the form
// of one: jsonrpc "2.0", and the members that JSON-RPC names with values of their
// kind. A text or number among them is valid JSON; of an object or array only the
// first bytes are looked at, and members of other names not at all: to read all of a
// large result would cost more than to relay it. A result has an id. Of a frame that
// says two things of one message only jsonrpc counts. An array has the form if one of
// its members has, or may be what a call waits for.
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
		params := m.at(slotParams)
		return m.at(slotMethod).IsString() && m.hasID() && validStart(m.at(slotMethod).Raw) &&
			(!params.Exists() || params.IsNull() || isNested(params.Raw) && validStart(params.Raw))
	case Result:
		return m.at(slotID).Exists() && m.hasID() && validStart(m.at(slotResult).Raw)
	case Error:
		failure := m.at(slotError).Raw
		return m.hasID() && isNested(failure) && failure[0] == '{' && validStart(failure)
	}
	return false
}

// hasMessage reports whether a member of the array is a message, or a reply.
func (m *Message) hasMessage() bool {
	var member Message
	for e := range m.Root().Elements() {
		member.Reset(m.From, e.Raw)
		if e.IsObject() && member.LookEnvelope() && (member.HasForm() || member.kind.IsReply() && member.at(slotID).Exists()) {
			return true
		}
	}
	return false
}

// hasID reports whether the frame has no id, or one that is valid. Its kind is not
// judged: a client that makes ids of its own kind is answered with them.
func (m *Message) hasID() bool {
	id := m.at(slotID)
	return !id.Exists() || validStart(id.Raw)
}

func isNested(raw []byte) bool { return raw[0] == '{' || raw[0] == '[' }

// validStart reports whether a raw value is valid JSON, as far as HasForm looks.
func validStart(raw []byte) bool {
	switch raw[0] {
	case '{':
		next := raw[skipSpace(raw, 1)]
		return next == '"' || next == '}'
	case '[':
		next := raw[skipSpace(raw, 1)]
		return next == '"' || next == ']' || bytes.IndexByte([]byte(`{[-0123456789tfn`), next) >= 0
	}
	if raw[0] == '"' && isBare(raw) || raw[0] != '"' && validID(raw) {
		return true
	}
	return utf8.Valid(raw) && json.Valid(raw)
}

// isBare reports whether a raw text has ASCII alone and no escapes: most ids and
// methods are so.
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
