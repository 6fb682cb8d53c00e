package database

import (
	"sync"
	"time"
)

// How long the breaker stays open, and after how many failures it opens. longestOpen is for a
// process with one connection, of which there may be thousands: see [Connect].
const (
	openAfter   = 2
	firstOpen   = time.Second
	longestOpen = 30 * time.Second
)

// A breaker keeps callers from waiting for a server that does not answer. While it is open one
// caller at a time tries, after 1 s, 2 s, and so on to longest.
type breaker struct {
	now     func() time.Time
	tell    func(error)
	longest time.Duration

	mu       sync.Mutex
	failures int
	open     time.Duration // how long it is open this time; 0 if it is closed
	until    time.Time
	trying   bool // a caller tries whether the server is back
}

// admit returns ErrDown to a caller that should not ask the server now.
func (b *breaker) admit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == 0 {
		return nil
	}
	if b.trying || b.now().Before(b.until) {
		return ErrDown
	}
	b.trying = true
	return nil
}

// abandon says that a caller gave up before it knew.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// failed says that the server did not answer.
func (b *breaker) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if b.failures++; b.failures < openAfter {
		return
	}
	first := b.open == 0
	b.open = min(max(2*b.open, firstOpen), b.longest)
	b.until = b.now().Add(b.open)
	if first && b.tell != nil {
		b.tell(err)
	}
}

// succeeded says that the server answered.
func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.open
	b.failures, b.open, b.trying = 0, 0, false
	if was > 0 && b.tell != nil {
		b.tell(nil)
	}
}
