package proxy

import (
	"sync"
	"time"
)

// work counts what goes on in a session beside its two pumps, so that the end
// can wait for it and nothing begins behind the end.
type work struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // not nil while somebody waits for n to be 0
}

// begin counts a piece of work in. It is false if it must not begin any more.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.n++
	return true
}

// end counts it out.
func (w *work) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// settle waits until no work is going on, or the deadline has passed.
func (w *work) settle(deadline time.Time) {
	w.mu.Lock()
	if w.n == 0 {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	within(deadline, func() { <-idle })
}

// close lets no further work begin.
func (w *work) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}
