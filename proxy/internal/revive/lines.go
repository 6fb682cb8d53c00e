package revive

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Lines are those that could not be written to a server. Lines are gathered before they
// are written, so the write that fails is seldom that of the line it hits.
type Lines struct {
	any atomic.Bool

	mu      sync.Mutex
	lines   [][]byte
	perhaps []byte // the first line, if it may have been read
	bytes   int
}

// Add takes the lines in b.
func (l *Lines) Add(b []byte) {
	if len(b) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(b) {
		l.lines = append(l.lines, bytes.Clone(line))
	}
	l.bytes += len(b)
	l.any.Store(true)
}

// AddRest takes the lines of b of which the first n bytes were written, and no more.
func (l *Lines) AddRest(b []byte, n int) {
	rest := b[bytes.LastIndexByte(b[:n], '\n')+1:]
	if sure := Unsent(b, n); len(sure) < len(rest) {
		l.mu.Lock()
		l.perhaps = bytes.Clone(rest[:len(rest)-len(sure)])
		l.mu.Unlock()
	}
	l.Add(rest)
}

// Sure returns the lines that no server has read, and keeps none any longer.
func (l *Lines) Sure() [][]byte {
	l.mu.Lock()
	perhaps := l.perhaps
	l.mu.Unlock()
	lines := l.Take()
	if len(lines) > 0 && perhaps != nil && bytes.Equal(lines[0], perhaps) {
		return lines[1:]
	}
	return lines
}

// Any reports whether there are lines.
func (l *Lines) Any() bool { return l.any.Load() }

// Bytes returns how many bytes they have.
func (l *Lines) Bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Take returns the lines, in order, and keeps them no longer.
func (l *Lines) Take() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines, l.bytes = nil, 0
	l.any.Store(false)
	return lines
}

// Unsent returns the lines of b that a server cannot have read when only the first n
// bytes were written. A line of which nothing but its end is missing may have been read:
// a server may take what stands before the end of its input for a line.
func Unsent(b []byte, n int) []byte {
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

// Requests yields the requests in a line, also of an array.
func Requests(line []byte, yield func(m *wire.Message)) (kind wire.Kind) {
	var m wire.Message
	m.Reset(wire.Client, line)
	m.LookEnvelope()
	request := func(m *wire.Message) {
		if m.Kind() == wire.Request && m.ID() != nil {
			yield(m)
		}
	}
	if m.Kind() != wire.Batch {
		request(&m)
		return m.Kind()
	}
	for e := range m.Root().Elements() {
		var member wire.Message
		member.Reset(wire.Client, e.Raw)
		member.LookEnvelope()
		request(&member)
	}
	return wire.Batch
}

// Wanted reports whether a line has no request, or one with an id that wants returns true
// for.
func Wanted(line []byte, wants func(id []byte) bool) (kind wire.Kind, wanted bool) {
	none := true
	kind = Requests(line, func(m *wire.Message) {
		none = false
		wanted = wants(m.ID()) || wanted
	})
	return kind, none || wanted
}

// Resend returns the lines among those that no server has read which the next one gets.
// Replies are for the server that has asked; and awaits says which requests, the youngest
// with an id first, have no answer.
func Resend(left []byte, awaits func(id []byte) bool) (lines []byte) {
	for line := range bytes.Lines(left) {
		if kind, wanted := Wanted(line, awaits); wanted && !kind.IsReply() {
			lines = append(lines, line...)
		}
	}
	return lines
}
