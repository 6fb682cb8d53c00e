package serve

import (
	"sync"
	"time"
)

// A deadline is the time at which a read or a write fails. It is cheap to set, so that it can be set for
// every message. Resetting a timer of the runtime costs more than all other work for a header, so a
// running timer is not reset: when it fires, it checks the current deadline.
type deadline struct {
	set   func(time.Time) error // sets the deadline of the connection
	began time.Time

	mu     sync.Mutex
	due    time.Time   // zero for no deadline
	fires  time.Time   // when the timer fires, never after due; zero if it is not running
	timer  *time.Timer // nil until it is needed
	passed bool        // the deadline was set on the connection
}

func (d *deadline) move(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due = t
	switch {
	case t.IsZero():
	case t.Before(d.began): // the HTTP server interrupts a running read so, and must not wait for a timer
		d.due, d.passed = time.Time{}, true
		return d.set(t)
	// A timer that fires before t is left alone: fire then looks at due again.
	case d.fires.IsZero() || t.Before(d.fires):
		d.fireLocked(t)
	}
	if !d.passed {
		return nil
	}
	// The connection still has the old deadline, with which every read or write would fail.
	d.passed = false
	return d.set(time.Time{})
}

// fireLocked sets the timer to fire at t. The caller holds mu.
func (d *deadline) fireLocked(t time.Time) {
	if d.fires = t; d.timer == nil {
		d.timer = time.AfterFunc(time.Until(t), d.fire)
		return
	}
	d.timer.Reset(time.Until(t))
}

// fire checks whether the deadline has passed; it may have moved.
func (d *deadline) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fires = time.Time{}
	switch {
	case d.due.IsZero():
	case time.Until(d.due) > 0:
		d.fireLocked(d.due)
	default:
		d.passed = true
		_ = d.set(d.due)
	}
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}
