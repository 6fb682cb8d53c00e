package revive

import (
	"bytes"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Lines are lines that could not be written to a server. Lines are gathered before they
// are written, so a write that fails concerns several of them.
type Lines struct {
	any atomic.Bool

	mu       sync.Mutex
	text     []byte
	doubtful []byte // a first line that the server may have read; part of text unless that was taken
}

// Add adds the lines in b.
func (l *Lines) Add(b []byte) {
	if len(b) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if !bytes.HasSuffix(b, []byte{'\n'}) { // the last line of the client may lack it
		l.text = append(l.text, '\n')
	}
	l.any.Store(true)
}

// AddRest adds the lines of b that were not completely written. n is how many bytes of b
// were written.
func (l *Lines) AddRest(b []byte, n int) {
	rest := b[bytes.LastIndexByte(b[:n], '\n')+1:]
	if unread := unsent(b, n); len(unread) < len(rest) {
		l.mu.Lock()
		l.doubtful = bytes.Clone(rest[:len(rest)-len(unread)])
		l.mu.Unlock()
	}
	l.Add(rest)
}

// Sure returns the lines that no server has read, in order, and removes all lines.
func (l *Lines) Sure() []byte {
	l.mu.Lock()
	doubtful := l.doubtful
	l.mu.Unlock()
	text := l.Take()
	if len(doubtful) > 0 && bytes.HasPrefix(text, doubtful) {
		_, text, _ = bytes.Cut(text, []byte{'\n'}) // with the line end that Add may have added
	}
	return text
}

// Any reports whether there are lines.
func (l *Lines) Any() bool { return l.any.Load() }

// Bytes returns the number of bytes in the lines.
func (l *Lines) Bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.text)
}

// Take returns the lines, in order, and removes them.
func (l *Lines) Take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text
	l.text = nil
	l.any.Store(false)
	return text
}

// unsent returns the lines of b that a server cannot have read if only the first n bytes
// were written. If only the line end of a line is missing, the server may have read it: the
// end of its input may end a line too.
func unsent(b []byte, n int) []byte {
	rest := b[bytes.LastIndexByte(b[:n], '\n')+1:]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		end = len(rest)
	}
	if written := n - (len(b) - len(rest)); written > 0 && len(bytes.TrimSpace(rest[written:end])) == 0 {
		return rest[min(end+1, len(rest)):]
	}
	return rest
}

// Requests yields the requests in a message of the client, which may be an array. Each is valid until
// the next one.
func Requests(m *wire.Message) iter.Seq[*wire.Message] {
	return func(yield func(*wire.Message) bool) {
		for one := range m.Messages() {
			if one.Kind() == wire.Request && one.ID() != nil && !yield(one) {
				return
			}
		}
	}
}

// isWanted reports whether a line has no request, or a request for whose id wants returns
// true. A cancellation is not wanted: its request has ended, or is not sent to the next server either. It could
// be the first message there, by which servers may tell the revision.
func isWanted(line []byte, wants func(id []byte) bool) (kind wire.Kind, wanted bool) {
	m := wire.Parse(wire.Client, line)
	if m.MethodIs("notifications/cancelled") {
		return m.Kind(), false
	}
	none := true
	for one := range Requests(m) {
		none = false
		wanted = wants(one.ID()) || wanted // wants is called for each member: it also records
	}
	return m.Kind(), none || wanted
}

// Resend returns the lines that the next server gets, of those that no server has read. It
// drops replies, which are for the server that sent the request. awaits reports whether the
// youngest request with an id has no answer.
func Resend(left []byte, awaits func(id []byte) bool) (lines []byte) {
	for line := range bytes.Lines(left) {
		if kind, wanted := isWanted(line, awaits); wanted && !kind.IsReply() {
			lines = append(lines, line...)
		}
	}
	return lines
}
