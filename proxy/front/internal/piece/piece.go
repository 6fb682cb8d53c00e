// Package piece has reusable buffers for the parts of a message that is too long to be held. Without
// them, a message of 1 GiB would leave 1 GiB of garbage.
package piece

import "sync"

// Size is the size of a piece in bytes.
const Size = 64 << 10

var free = sync.Pool{New: func() any { return new([Size]byte) }}

// Cut copies the beginning of b into a piece, and returns the piece and the rest of b.
func Cut(b []byte) (piece, rest []byte) {
	room := free.Get().(*[Size]byte)
	n := copy(room[:], b)
	return room[:n], b[n:]
}

// Free makes a piece reusable. Nobody may use it any more.
func Free(piece []byte) { free.Put((*[Size]byte)(piece[:Size])) }
