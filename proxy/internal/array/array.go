// Package array splits a line that is an array of messages, and joins the members that
// pass.
package array

import "github.com/attache-mcp/attache/proxy/wire"

// An Array collects the members of a line that pass, in one buffer: a line may have
// millions of members, and a buffer for each would take many times its bytes. The bytes
// around and between these members are kept. The zero Array belongs to no line, and is
// for members of attache's own.
type Array struct {
	frame  []byte // the line to split
	head   int    // length of the bytes before the first member
	end    int    // offset of the end of the current member
	before []byte // the bytes before the current member, nil when they were used

	out    []byte
	n      int // members in out
	edited bool
}

// New returns an Array for the members of frame.
func New(frame []byte) Array { return Array{frame: frame} }

// Begin sets the current member of the frame.
func (a *Array) Begin(e wire.Value) {
	if a.end == 0 {
		a.head = e.Off
	}
	a.before = a.frame[a.end:e.Off]
	a.end = e.Off + len(e.Raw)
}

// Add adds a message that passes: the current member, or one in addition to it.
func (a *Array) Add(m *wire.Message) {
	before := a.before
	switch {
	case a.n == 0 && a.end > 0:
		before = a.frame[:a.head]
	case a.n == 0:
		before = []byte{'['}
	case before == nil: // the current member has used it, and m is one in addition
		before = []byte{','}
	}
	a.out = append(append(a.out, before...), m.Frame()...)
	a.n++
	a.edited = a.edited || m.Edited()
	a.before = nil
}

// Line returns the members as one line with the given end.
func (a *Array) Line(eol []byte) []byte {
	tail := []byte{']'}
	if a.end > 0 {
		tail = a.frame[a.end:]
	}
	return append(append(a.out, tail...), eol...)
}

// Len returns the number of messages that pass.
func (a *Array) Len() int { return a.n }

// Edited reports whether one of them was edited.
func (a *Array) Edited() bool { return a.edited }

// JoinReplies returns the replies as one message.
func JoinReplies(replies []*wire.Message) *wire.Message {
	var a Array
	for _, r := range replies {
		a.Add(r)
	}
	var m wire.Message
	m.Reset(wire.Server, a.Line([]byte{'\n'}))
	return &m
}

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
