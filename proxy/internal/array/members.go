package array

import "github.com/attache-mcp/attache/proxy/wire"

// Most is the largest number of members of an array from the client that is split. A line
// of 8 MiB can have millions of members, each with an answer of many more bytes than its
// own. A longer array passes unchanged, or is refused as a whole.
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

// Fault returns what is wrong with a member that is not plain, or is itself an array.
func Fault(m *wire.Message) wire.Ambiguity {
	if m.Kind() == wire.Batch {
		return wire.BadEnvelope
	}
	return m.Ambiguity()
}

// RepliesOnly reports whether m is a reply, or an array with nothing but replies. A frame that
// is held back may be waiting for one.
func RepliesOnly(m *wire.Message) bool {
	for one := range m.Messages() {
		if !one.Kind().IsReply() {
			return false
		}
	}
	return true
}
