// Package piece lends the memory in which parts of a message that is too long to be held wait for
// its client. Without it a message of 1 GiB would leave 1 GiB of garbage, and the heap would grow.
package piece

import "sync"

// Size is how many bytes a piece has at most.
const Size = 64 << 10

var free = sync.Pool{New: func() any { return new([Size]byte) }}

// Cut copies the beginning of b into a piece, and returns the piece and the rest of b. Both are
// empty if b is.
func Cut(b []byte) (piece, rest []byte) {
	room := free.Get().(*[Size]byte)
	n := copy(room[:], b)
	return room[:n], b[n:]
}

// Free takes a piece back, which nobody may use any more.
func Free(piece []byte) { free.Put((*[Size]byte)(piece[:Size])) }
