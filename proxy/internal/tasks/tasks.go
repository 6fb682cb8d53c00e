// Package tasks waits for work that runs on other goroutines, up to a deadline.
package tasks

import (
	"sync"
	"time"
)

// A Group counts running tasks, so that the end of a session can wait for them and no task
// begins after it. The zero value is ready to use.
type Group struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when n is 0; nil if no Wait needs it
}

// Begin adds a task. It returns false, and adds none, after Close.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

// End removes a task.
func (g *Group) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until no task is running, or the deadline has passed.
func (g *Group) Wait(deadline time.Time) {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	Await(idle, time.Until(deadline), nil)
}

// Close makes Begin return false from now on.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// RunUntil runs f on a new goroutine and waits until it returns, or the deadline has passed. Then f goes
// on by itself, so it must not change what its caller uses afterwards without a lock.
func RunUntil(deadline time.Time, f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	Await(done, time.Until(deadline), nil)
}

// Await waits until one of the channels is closed, but no longer than limit. Either channel
// may be nil.
func Await(ready <-chan struct{}, limit time.Duration, ending <-chan struct{}) {
	select {
	case <-ready:
	case <-time.After(limit):
	case <-ending:
	}
}
