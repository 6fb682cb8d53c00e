// Package room has reusable memory for large messages over HTTP, large edits, and the text of many
// events. New memory must be cleared before use and collected after it, which would cost more than
// handling the message.
package room

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Smallest is the smallest size of a Room in bytes.
const Smallest = 32 << 10

// A Room is reusable memory. It implements wire.Lease.
type Room struct {
	// Bytes is empty when the Room is borrowed. Its capacity is the size.
	Bytes   []byte
	holders atomic.Int32
}

// free has the unused rooms by size: Smallest, and each size twice that before it.
var free [16]sync.Pool

// Borrow returns a Room for size bytes, which the caller holds, or nil if size is too large.
func Borrow(size int) *Room {
	i := class(size)
	if i >= len(free) {
		return nil
	}
	r, ok := free[i].Get().(*Room)
	if !ok {
		r = &Room{Bytes: make([]byte, 0, Smallest<<i)}
	}
	r.holders.Store(1)
	return r
}

func class(size int) int { return bits.Len(uint(size-1) / Smallest) }

// Hold implements wire.Lease.
func (r *Room) Hold() { r.holders.Add(1) }

// Release implements wire.Lease.
func (r *Room) Release() {
	if r.holders.Add(-1) == 0 {
		r.Bytes = r.Bytes[:0]
		free[class(cap(r.Bytes))].Put(r)
	}
}
