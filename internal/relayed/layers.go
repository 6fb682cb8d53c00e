package relayed

import "slices"

// The methods in this file carry out those of middleware.Call, which document them.

// OnReply registers a hook for the call's reply.
func (c *Call) OnReply(h Hook) {
	if c.live {
		c.hooks = append(c.hooks, h)
	}
}

// OnReplyIf registers a hook that may not want the reply.
func (c *Call) OnReplyIf(h LateHook) {
	if c.live {
		if c.late == nil {
			c.late = c.lateRoom[:0]
		}
		c.late = append(c.late, lateHook{len(c.hooks), h})
	}
}

// MustHold declares that a hook must read the reply.
func (c *Call) MustHold() { c.mustHold = c.live }

// OnSent registers a function that is called after the reply was sent.
func (c *Call) OnSent(f func(error)) {
	if c.live {
		c.sent = append(c.sent, f)
	}
}

// SetValue attaches a value to the call.
func (c *Call) SetValue(key, v any) {
	for i := range c.values {
		if c.values[i].key == key {
			c.values[i].value = v
			return
		}
	}
	c.values = append(c.values, value{key, v})
}

// Value returns the value under key, or nil.
func (c *Call) Value(key any) any {
	for i := range c.values {
		if c.values[i].key == key {
			return c.values[i].value
		}
	}
	return nil
}

// Mark marks the call with key.
func (c *Call) Mark(key any) { c.marks = append(c.marks, key) }

// Marked reports whether the call is marked with key.
func (c *Call) Marked(key any) bool { return slices.Contains(c.marks, key) }

// Listen registers a listener of notes: a func(*middleware.Call, middleware.Note), which this package
// cannot name.
func (c *Call) Listen(skipped bool, listener any) {
	c.listeners = append(c.listeners, listener)
	c.explained = c.explained || skipped
}

// Listeners returns the registered listeners.
func (c *Call) Listeners() []any { return c.listeners }

// Explained reports whether a listener wants the notes of rules that did not apply.
func (c *Call) Explained() bool { return c.explained }
