package database

import (
	"sync"
	"time"
)

// The breaker opens after openAfter failures, first for firstOpen. longestOpen is the maximum
// for a process with one connection, of which there may be thousands: see [Connect].
const (
	openAfter   = 2
	firstOpen   = time.Second
	longestOpen = 30 * time.Second
)

// A breaker protects callers from waiting for a server that does not answer. While it is open,
// it admits one caller at a time, after 1 s, 2 s, and so on up to longest. Each caller that was admitted
// calls one of abandon, recordFailure and recordSuccess; if it did not, nobody would be admitted any more.
type breaker struct {
	now     func() time.Time
	report  func(error) // ServerOptions.Tell; may be nil; called with mu held, so that calls keep their order
	longest time.Duration

	mu       sync.Mutex
	failures int           // since the last success
	open     time.Duration // how long it stays open this time; 0 if it is closed
	until    time.Time     // nobody is admitted before
	trying   bool          // the admitted caller is using the server
}

// admit returns ErrDown if the caller must not use the server now.
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

// abandon records that the admitted caller gave up before the server answered, which says nothing about the
// server: the next caller is admitted immediately.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// recordFailure records that the server did not answer.
func (b *breaker) recordFailure(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if b.failures++; b.failures < openAfter {
		return
	}
	first := b.open == 0
	b.open = min(max(2*b.open, firstOpen), b.longest)
	b.until = b.now().Add(b.open)
	if first && b.report != nil {
		b.report(err)
	}
}

// recordSuccess records that the server answered.
func (b *breaker) recordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	wasOpen := b.open > 0
	b.failures, b.open, b.trying = 0, 0, false
	if wasOpen && b.report != nil {
		b.report(nil)
	}
}
