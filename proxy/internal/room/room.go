// Package room lends memory: to large messages that come or go over HTTP, to large edits, and to the
// text of many events. New memory would cost more, as it is cleared before its use and collected
// after it, than what is done with the message.
package room

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Smallest is how many bytes a Room has at least.
const Smallest = 32 << 10

// A Room is memory that is lent. It implements wire.Lease.
type Room struct {
	// Bytes are empty when the Room is borrowed.
	Bytes   []byte
	holders atomic.Int32
}

// free lends rooms: of Smallest bytes, and each twice as large as the one before.
var free [16]sync.Pool

// Borrow returns a Room for size bytes, which the caller holds; nil if there is none of that size.
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
