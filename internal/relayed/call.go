// Package relayed has the calls that code which runs layers works with: package proxy, package dryrun,
// and tests of layers without a relay.
//
// Layers see the same call as a middleware.Call. That type is defined as this package's [Call], with the
// methods for layers, so a pointer to one is converted to a pointer to the other at no cost.
package relayed

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// The function types of package middleware.
type (
	Handler = func(ctx context.Context, m *wire.Message) error
	Hook    = func(ctx context.Context, reply *wire.Message) error
	Work    = func(ctx context.Context, m *wire.Message) (reply *wire.Message)
)

// A Relay carries out the methods of a middleware.Call that have the same names. Package proxy
// implements it for calls, package dryrun for their shadows.
type Relay interface {
	Answer(ctx context.Context, reply *wire.Message) error
	Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message))
	Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume Handler)
	Defer(m *wire.Message, work Work)
	Cancelled() bool
}

// A Call is a middleware.Call as its relay sees it. The zero Call must be Reset before use.
type Call struct {
	relay     Relay
	live      bool // the frame is a request of the client
	mustHold  bool // see MustHold
	explained bool // a listener also wants the notes of rules that did not apply
	hooks     []Hook
	late      []lateHook
	lateRoom  [1]lateHook // backs late, so that the other direction reads it from the cache lines of the call
	sent      []func(error)
	values    []value
	marks     []any
	listeners []any // see Listen
}

type value struct{ key, value any }

// A LateHook is a middleware.LateHook.
type LateHook interface {
	Wanted() bool
	Reply(ctx context.Context, reply *wire.Message) error
}

// A lateHook is a LateHook and its position among the hooks.
type lateHook struct {
	index int
	hook  LateHook
}

// Reset makes c the call of a new frame. request reports whether the frame is a
// request of the client.
func (c *Call) Reset(r Relay, request bool) {
	if c.relay != r { // not written again, because a late reply to Ask may still be reading it
		c.relay = r
	}
	clear(c.hooks)
	clear(c.values)
	clear(c.marks)
	clear(c.listeners)
	clear(c.sent)
	c.live, c.hooks, c.values, c.sent = request, c.hooks[:0], c.values[:0], c.sent[:0]
	c.late, c.marks = c.late[:0], c.marks[:0]
	c.mustHold, c.explained, c.listeners = false, false, c.listeners[:0]
}

// Relay returns the relay that was passed to Reset.
func (c *Call) Relay() Relay { return c.relay }

// Live reports whether the frame is a request of the client.
func (c *Call) Live() bool { return c.live }

// Sent returns the functions that OnSent registered.
func (c *Call) Sent() []func(error) { return c.sent }

// HoldsReply reports whether MustHold was called.
func (c *Call) HoldsReply() bool { return c.mustHold }

// Hooked reports whether any hooks are registered, including those of OnReplyIf.
func (c *Call) Hooked() bool { return len(c.hooks)+len(c.late) > 0 }

// Hooks returns the hooks that want the reply, in the order of their registration. The first
// call of Hooks asks those of OnReplyIf, so the call must be over by then.
func (c *Call) Hooks() []Hook {
	if len(c.late) > 0 {
		c.insertLate()
	}
	return c.hooks
}

// insertLate inserts the late hooks that want the reply among the other hooks. It begins with the last
// one, so that the indexes of those before it stay right.
func (c *Call) insertLate() {
	for i := len(c.late) - 1; i >= 0; i-- {
		if h := c.late[i].wanted(); h != nil {
			c.hooks = slices.Insert(c.hooks, c.late[i].index, h)
		}
	}
	c.late = c.late[:0]
}

// wanted returns the hook if it wants the reply, and otherwise nil. The relay recovers from panics of
// hooks only, so if Wanted panics, wanted returns a hook that panics with the same text and the
// stack of Wanted.
func (l lateHook) wanted() (hook Hook) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("%v\n%s", p, debug.Stack())
			hook = func(context.Context, *wire.Message) error { panic(text) }
		}
	}()
	if l.hook.Wanted() {
		return l.hook.Reply
	}
	return nil
}

// Shadow returns a call for a copy of c's frame, for a dry run of other layers. It has the
// values that were attached to c so far, and no listeners. r is its relay. It does not change c.
func (c *Call) Shadow(r Relay) *Call {
	return &Call{relay: r, live: c.live, values: slices.Clone(c.values)}
}
