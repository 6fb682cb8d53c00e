package serve

import (
	"net"
	"sync"
	"time"
)

// A listener accepts connections on which setting a deadline is cheap, so that it can be done for
// every message. Resetting a timer of the runtime costs more than all other work for a header, so a
// running timer is not reset: when it fires, it checks the current deadline.
type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	own := &connection{
		Conn: c,
		read: deadline{set: c.SetReadDeadline, began: now}, write: deadline{set: c.SetWriteDeadline, began: now},
	}
	own.watch = watch{c: own, begin: deadline{set: own.watch.set}}
	return own, nil
}

// A connection is a connection accepted by a listener.
type connection struct {
	net.Conn
	read, write deadline
	watch       watch
}

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	// While a request is handled, this is the read by which net/http notices that the client leaves. It
	// returns without data, and the watch reads in its place.
	if len(b) == 1 && c.watch.postpone() {
		return 0, nil
	}
	// The watch may have read the first byte of the next request.
	if n := c.watch.take(b); n > 0 {
		return n, nil
	}
	return c.Conn.Read(b)
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(t time.Time) error {
	if err := c.read.move(t); err != nil {
		return err
	}
	return c.write.move(t)
}

// SetReadDeadline implements net.Conn.
func (c *connection) SetReadDeadline(t time.Time) error { return c.read.move(t) }

// SetWriteDeadline implements net.Conn.
func (c *connection) SetWriteDeadline(t time.Time) error { return c.write.move(t) }

// CloseWrite closes the write side. The HTTP server calls it before it closes a connection on which
// the client is still writing.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.read.stop()
	c.write.stop()
	c.watch.begin.stop()
	if c.watch.left != nil {
		c.watch.left()
	}
	return c.Conn.Close()
}

// A deadline is the time at which a read or a write fails.
type deadline struct {
	set   func(time.Time) error // sets the deadline of the connection
	began time.Time

	mu     sync.Mutex
	due    time.Time   // zero for no deadline
	fires  time.Time   // when the timer fires, never after due; zero if it is not running
	timer  *time.Timer // nil until it is needed
	passed bool        // the deadline was set on the connection
}

// move sets the deadline to t.
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

// stop stops the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}
