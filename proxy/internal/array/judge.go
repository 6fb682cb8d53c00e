package array

import "github.com/attache-mcp/attache/proxy/wire"

// Most is how many members an array of the client's may have to be taken apart. One line
// of 8 MiB can have millions, each of which would be answered in many more bytes than it
// has. A longer array passes as it is, or is refused whole.
const Most = 1000

// Crowded reports whether m has more than Most members.
func Crowded(m *wire.Message) bool {
	n := 0
	for range m.Root().Elements() {
		if n++; n > Most {
			return true
		}
	}
	return false
}

// Fault says what is wrong with a member of an array that is not plain, or is itself an
// array.
func Fault(m *wire.Message) wire.Ambiguity {
	if m.Kind() == wire.Batch {
		return wire.BadEnvelope
	}
	return m.Ambiguity()
}

// RepliesOnly reports whether m is a reply, or an array of nothing else: what a frame that
// is held back may be waiting for.
func RepliesOnly(m *wire.Message) bool {
	if m.Kind() != wire.Batch {
		return m.Kind().IsReply()
	}
	for e := range m.Root().Elements() {
		var member wire.Message
		member.Reset(wire.Client, e.Raw)
		if member.LookEnvelope(); !member.Kind().IsReply() {
			return false
		}
	}
	return true
}
