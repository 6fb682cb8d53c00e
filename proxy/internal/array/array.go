// Package array takes apart a line that is an array of messages, and puts together
// what becomes of its members.
package array

import "github.com/attache-mcp/attache/proxy/wire"

// An Array collects what becomes of the members of a line that was taken apart,
// behind one another: a line may have millions of members, and each kept by itself
// would take many times its bytes. What stood around and between the members that
// go on stays. The zero Array is that of no line, for members of attache's own.
type Array struct {
	frame  []byte // that is taken apart
	head   int    // of it: what stands before the first member
	end    int    // where the member at hand ends
	before []byte // what stands before it, if it is not used yet

	out    []byte
	n      int // members in out
	edited bool
}

// Begin says which member of the frame comes next.
func (a *Array) Begin(e wire.Value) {
	if a.end == 0 {
		a.head = e.Off
	}
	a.before = a.frame[a.end:e.Off]
	a.end = e.Off + len(e.Raw)
}

// Add takes what goes on: what became of the member at hand, or in addition to it.
func (a *Array) Add(m *wire.Message) {
	before := a.before
	switch {
	case a.n == 0 && a.end > 0:
		before = a.frame[:a.head]
	case a.n == 0:
		before = []byte{'['}
	case before == nil || a.end == 0:
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

// New returns the array of what goes on of the members of frame.
func New(frame []byte) Array { return Array{frame: frame} }

// Len returns how many members go on.
func (a *Array) Len() int { return a.n }

// Edited reports whether one of them is not as it came.
func (a *Array) Edited() bool { return a.edited }

// Join returns the frames as one array with the given line end.
func Join(frames [][]byte, eol []byte) []byte {
	line := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, f...)
	}
	return append(append(line, ']'), eol...)
}
