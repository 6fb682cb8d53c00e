// Package tasks waits for work that runs on other goroutines, up to a deadline.
package tasks

import (
	"sync"
	"time"
)

// A Group counts tasks that are under way, so that the end of a session can wait for
// them and none begins after it. The zero value is ready.
type Group struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // not nil while somebody waits for n to be 0
}

// Begin counts a task in. It returns false if the task must not begin any more.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

// End counts a task out.
func (g *Group) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until no task is under way, or the deadline has passed.
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
	RunUntil(deadline, func() { <-idle })
}

// Close lets no further task begin.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// RunUntil runs f and waits for it no longer than until the deadline.
func RunUntil(deadline time.Time, f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// Await waits until one of the channels is closed, and no longer than limit.
func Await(ready <-chan struct{}, limit time.Duration, ending <-chan struct{}) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-ready:
	case <-t.C:
	case <-ending:
	}
}
