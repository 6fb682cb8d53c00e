package wire

import (
	"bytes"
	"unicode/utf16"

	"github.com/attache-mcp/attache/proxy/wire/internal/jsonstring"
)

// MaxDepth is the deepest nesting of a plain frame. Python's json and go-sdk give up
// at about 1,000, so 512 leaves room for wrappers of a server.
const MaxDepth = 512

// An Ambiguity is a reason why two JSON readers in the field may take one frame
// for two different messages, or why one of them cannot read it.
type Ambiguity uint8

// The reasons, in the order of the checks; zero means the frame is plain.
const (
	NotJSON     Ambiguity = iota + 1 // not one JSON value: bad syntax, a bare control byte, a byte-order mark, bytes after the value
	NotUTF8                          // bytes that are not UTF-8: Python refuses them, others replace them
	TooDeep                          // nested deeper than MaxDepth
	EqualKeys                        // two members of one object with one name: gjson takes the first, most others the last
	TwinName                         // a member or method that some reader takes for another one with a meaning; see [SameName]
	Inherited                        // a member __proto__ at the top or in params: JavaScript that copies the object inherits from its value
	BadEnvelope                      // not a JSON-RPC 2.0 request, notification or reply with a string or integer id
	BadCall                          // a tools/call without an object of params, a string name, or with arguments that are not an object
)

func (a Ambiguity) String() string {
	return [...]string{
		"plain",
		"not one JSON value",
		"not UTF-8",
		"nested deeper than 512",
		"two members of one object have the same name",
		"a name differs from one that matters only in letter case, blanks or invisible characters",
		"a member is called __proto__, from which JavaScript may inherit other members",
		"not a JSON-RPC 2.0 message with a string or integer id",
		"tools/call needs an object of params with a string name and an object of arguments",
	}[a]
}

// Why returns the reason of [Message.Ambiguity]. For [TwinName] it includes the name with a meaning.
func (m *Message) Why() string {
	if m.ambiguity != TwinName {
		return m.ambiguity.String()
	}
	return m.ambiguity.String() + ": " + m.twin
}

// Code returns the JSON-RPC error code of a refusal for this reason.
func (a Ambiguity) Code() int {
	switch a {
	case NotJSON, NotUTF8:
		return CodeParseError
	case BadCall:
		return CodeInvalidParams
	}
	return CodeInvalidRequest
}

// checkEnvelope checks the frame against JSON-RPC 2.0 and, for tools/call, the
// members that rules decide on.
func (s *Scanner) checkEnvelope() {
	m := s.m
	method, id := m.at(slotMethod), m.at(slotID)
	result, failure := m.at(slotResult).Exists(), m.at(slotError)
	call := m.MethodIs("tools/call")
	switch {
	case !m.at(slotVersion).Equals("2.0"),
		id.Exists() && !validID(id.Raw),
		method.Exists() && !call && !clearName(method),
		// A message has a method or the members of a reply, and not both.
		method.Exists() == (result || failure.Exists()),
		// An error may lack the id: that of the request could not be read (revision 2025-11-25).
		result && (failure.Exists() || !id.Exists()),
		// Unlike in a frame of the server, an error that is null counts: the TypeScript SDK drops the frame.
		failure.Exists() && !failure.IsObject():
		s.flag(BadEnvelope)
	}
	if !call {
		s.flagMethod(method)
		return
	}
	args := m.at(slotArguments)
	if !m.at(slotParams).IsObject() || !clearName(m.at(slotName)) || args.Exists() && !args.IsObject() {
		s.flag(BadCall)
	}
}

// validID reports whether raw is a string or an integer, as every revision's
// RequestId demands. It does not check the inside of a string. An integer with
// leading zeros is not JSON; -0 is, and servers may answer it as 0.
func validID(raw []byte) bool {
	if len(raw) > 0 && raw[0] == '"' {
		return true
	}
	raw = bytes.TrimPrefix(raw, []byte{'-'})
	for _, c := range raw {
		if class[c]&clsDigit == 0 {
			return false
		}
	}
	return len(raw) == 1 || len(raw) > 1 && raw[0] != '0'
}

// clearName reports whether v is a string that all readers read alike: without NUL,
// which ends it for some, and without a lone surrogate, which some replace.
func clearName(v Value) bool {
	if !v.IsString() {
		return false
	}
	in := v.Raw[1 : len(v.Raw)-1]
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 || i+1 == len(in) {
			return true
		}
		c := in[i+1]
		if in = in[i+2:]; c != 'u' {
			continue // it is escaped, so it begins no escape
		}
		first, _ := jsonstring.Hex4(in)
		_, n := jsonstring.UnescapeRune(in) // 10 after a pair of surrogates
		if first == 0 || utf16.IsSurrogate(first) && n < 10 {
			return false
		}
		in = in[n:]
	}
}

// flagMethod flags a method that is [SameName] as one of methods but not equal to it, because
// a lenient server may execute that one. A method of lower-case letters cannot be one, because
// all of methods are lower case.
func (s *Scanner) flagMethod(method Value) {
	if !method.IsString() {
		return
	}
	text := method.Raw[1 : len(method.Raw)-1]
	for _, c := range text { // also a backslash: an escape may stand for a letter
		if (c < 'a' || c > 'z') && c != '/' && c != '_' {
			s.flagTwin(s.names.unescape(text), methods[:])
			return
		}
	}
}
