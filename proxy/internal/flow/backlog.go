package flow

import (
	"sync"
	"sync/atomic"
)

// A Backlog counts the bytes of messages that attache made and the client has not read yet. When the
// limit is reached, the relay stops reading from the client, so memory stays bounded.
type Backlog struct {
	// Limit is how many bytes may wait.
	Limit int64

	bytes atomic.Int64

	mu   sync.Mutex
	room chan struct{} // closed when bytes < limit; nil while nobody waits for that
}

// Add adds n bytes, which may be negative.
func (b *Backlog) Add(n int64) {
	// Only what takes bytes away can make room. Full looks again with the lock, so it misses none.
	if b.bytes.Add(n) >= b.Limit || n > 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// Full returns a channel that is closed when there is room again, nil if there
// is room now.
func (b *Backlog) Full() <-chan struct{} {
	if b.bytes.Load() < b.Limit {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes.Load() < b.Limit {
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}
