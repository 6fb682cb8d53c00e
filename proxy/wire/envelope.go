package wire

import (
	"encoding/json"
	"iter"

	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
)

// Parse returns the message on line, with the results of [Message.LookEnvelope]. It keeps line. A line
// that is no message has the kind Unreadable.
func Parse(from Peer, line []byte) *Message {
	m := &Message{}
	m.Reset(from, line)
	m.LookEnvelope()
	return m
}

// Messages yields the members of m, with the results of LookEnvelope, or m itself if it is
// not an array. Each member is valid until the next one.
func (m *Message) Messages() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		if m.kind != Batch {
			yield(m)
			return
		}
		var member Message
		for e := range m.Root().Elements() {
			member.Reset(m.From, e.Raw)
			if member.LookEnvelope(); !yield(&member) {
				return
			}
		}
	}
}

// LookEnvelope finds the top-level members of a frame and sets the kind. It skips
// values at memory speed, so it is for frames that are not judged by their content.
// It reports false for a frame that cannot be a message, such as log noise.
//
// Members that contradict each other (two ids, or a result together with an error or a method)
// are recorded as an [Ambiguity]. If a frame has both a result and an error and one of them is
// null, that one is ignored, because some serialisers write every member.
func (m *Message) LookEnvelope() bool {
	m.ambiguity, m.kind, m.deep = 0, Unreadable, false
	b := m.frame
	i := skip.Space(b, 0)
	if i < len(b) && b[i] == '[' {
		m.forget()
		// Log lines often begin with a bracket, so check the syntax. Arrays are few: no
		// revision after 2025-03-26 has them.
		first := skip.Space(b, i+1)
		if first == len(b) || b[first] != '{' || !json.Valid(b[i:]) {
			return false
		}
		m.kind = Batch
		return true
	}
	if !m.locate(i) {
		m.forget()
		return false
	}
	m.settle()
	// Some servers log JSON objects. One without method, result, error and jsonrpc is no message.
	return m.kind != Unreadable || m.at(slotVersion).Exists()
}

// locate records the positions of the members of the object at offset i, and whether
// they contradict each other. It reports false unless the brackets and strings from
// there to the end of the frame are those of one object.
func (m *Message) locate(i int) bool {
	m.forget()
	if !m.members(i) {
		return false
	}
	result, failed := m.at(slotResult), m.ErrorObject().Exists()
	m.ambiguity = max(m.ambiguity, conflict(m.at(slotMethod).Exists(), result.Exists() && !(failed && result.IsNull()), failed))
	return true
}

// conflict returns BadEnvelope if the members contradict each other, else 0.
func conflict(method, result, failure bool) Ambiguity {
	if method && (result || failure) || result && failure {
		return BadEnvelope
	}
	return 0
}

// members records the positions of the members of the object at offset i. It reports false as locate does.
func (m *Message) members(i int) bool {
	b := m.frame
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = skip.Space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return skip.Space(b, i+1) == len(b)
	}
	for i < len(b) && b[i] == '"' {
		end := skip.String(b, i)
		if end < 0 {
			return false
		}
		s := topSlotQuoted(b[i:end])
		if i = skip.Space(b, end); i >= len(b) || b[i] != ':' {
			return false
		}
		start := skip.Space(b, i+1)
		if start >= len(b) {
			return false
		}
		if i = skip.Value(b, start); i < 0 {
			return false
		}
		m.record(s, span{start, i})
		if i = skip.Space(b, i); i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return skip.Space(b, i+1) == len(b)
		}
		if b[i] != ',' {
			return false
		}
		i = skip.Space(b, i+1)
	}
	return false
}

// record records a member's position. Of two equal ones the last counts, as for most readers; the frame
// is ambiguous.
func (m *Message) record(s slot, p span) {
	if s == slotNone {
		return
	}
	if s == slotID {
		m.ids++
	}
	if m.spans[s].end > 0 {
		m.ambiguity = EqualKeys
	}
	m.spans[s] = p
}

// locateParams records the positions of the members of params that layers need, after an edit or for a
// message that attache made: locate does not look there.
func (m *Message) locateParams() {
	for member := range m.at(slotParams).Members() {
		for s := slotName; s <= slotMeta; s++ {
			if v := member.Value; member.Key.Equals(slotNames[s]) {
				m.record(s, span{v.Off, v.Off + len(v.Raw)})
			}
		}
	}
}
