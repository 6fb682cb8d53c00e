package middleware

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Relay carries out the methods of a [Call] that have the same names. Package proxy
// implements it for calls, package dryrun for their shadows.
type Relay interface {
	Answer(ctx context.Context, reply *wire.Message) error
	Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message))
	Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume Handler)
	Defer(m *wire.Message, work Work)
	Cancelled() bool
}

// A Call is a request of the client, from its arrival until its reply has been sent. Every frame
// that a handler sees has a Call, so a layer need not check for nil; for a frame that is not a
// request of the client, OnReply and Answer do nothing.
//
// A Call is valid until its last hook has returned. It is then reused for another request.
// Only handlers and hooks may call its methods.
type Call struct {
	relay     Relay
	live      bool // the frame is a request of the client
	mustHold  bool // see MustHold
	explained bool // a listener also wants the notes of rules that did not apply
	hooks     []ReplyHook
	late      []lateHook
	lateRoom  [1]lateHook // backs late, so that the other direction reads it from the cache lines of the call
	sent      []func(error)
	values    []value
	marks     []any
	listeners []func(*Call, Note)
}

type value struct{ key, value any }

// A LateHook is a hook that decides at the end of the call whether it wants the reply.
type LateHook interface {
	// Wanted reports whether Reply should be called if there is a reply. It is called once, when
	// the reply has arrived but has not been parsed, or when the client has cancelled the call.
	// It runs in either direction and must not block. Cancelled is the only method of the call
	// that it may use.
	Wanted() bool
	// Reply is the [ReplyHook].
	Reply(ctx context.Context, reply *wire.Message) error
}

// A lateHook is a LateHook and its position among the hooks.
type lateHook struct {
	index int
	hook  LateHook
}

// Reset makes c the call of a new frame. request reports whether the frame is a
// request of the client. It is for code that runs layers.
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

// OnReply registers a hook for the call's reply. Call it before next: once the call has been
// sent, its reply may arrive at any time. A cancelled call may have no reply. If the upstream
// ends, the reply is an error from attache.
func (c *Call) OnReply(h ReplyHook) {
	if c.live {
		c.hooks = append(c.hooks, h)
	}
}

// OnReplyIf is like OnReply for a hook that may not want the reply. A reply that no hook
// wants passes unread. One LateHook may be registered for many calls.
func (c *Call) OnReplyIf(h LateHook) {
	if c.live {
		if c.late == nil {
			c.late = c.lateRoom[:0]
		}
		c.late = append(c.late, lateHook{len(c.hooks), h})
	}
}

// MustHold declares that the client must not see the reply unless a hook has read it, because
// something may have to be removed. A reply over the hold limit, which would otherwise stream
// through, is dropped, and the call is answered with an error, which the hooks see instead. Call
// it before next.
//
// While such a call is in flight, the relay also drops every line over the hold limit if it did
// not find an id in the part that it read, because that line may be the reply.
func (c *Call) MustHold() { c.mustHold = c.live }

// Answer answers the call in place of the upstream. The layer then does not call
// next. reply must have the request's raw id. For a nil reply, or one with another id,
// the relay answers with an internal error when the handler has returned.
func (c *Call) Answer(ctx context.Context, reply *wire.Message) error {
	if !c.live {
		return nil
	}
	return c.relay.Answer(ctx, reply)
}

// Ask sends a request from attache itself to a peer. It calls done once: with the reply, which
// no layer sees, or with nil if no reply arrived within limit. done runs on another goroutine. It
// must not block, and must lock what it shares. It may keep the reply. It may call Ask again,
// even after the call is over, but no other method of the call.
//
// Ask does not check whether the protocol allows the method at that moment; the layer must.
func (c *Call) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(reply *wire.Message)) {
	c.relay.Ask(to, method, params, limit, done)
}

// Suspend holds back m, the message being handled, until ready is closed, the limit has
// passed, or the session ends. It then calls resume with a copy of m; resume usually calls
// next. The handler or hook that calls Suspend must return nil immediately.
//
// While a frame from the client is held back, the frames behind it wait too, to keep their
// order. Replies of the client do not wait, because the layer may be waiting for one of them.
// While a reply from the server is held back, other frames from the server do not wait.
//
// Some messages cannot wait and are resumed immediately, as if the limit had passed: members
// of a batch, messages that belong to no call, a reply that is too large to hold, and a reply
// that would take the total size of the waiting replies over the hold limit.
func (c *Call) Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume Handler) {
	c.relay.Suspend(m, ready, limit, resume)
}

// Defer calls work on a new goroutine to answer the call, while the frames behind it
// continue. The layer does not call next and returns nil. work receives a copy of m,
// the message being handled. It returns the reply, which must have the request's raw
// id and goes through the hooks of the layers outside this one. If the call was
// cancelled in the meantime, the reply is dropped. If work panics, returns nil, or returns
// a reply with another id, the call is answered with an internal error.
//
// The context of work is cancelled when the client cancels the call, and at the end of the
// session; a client that closed its input normally is given half a second before that. The
// session then waits briefly for work to return. The answer to a member of a batch is sent
// together with the answers that are ready at the same time, or in an array of its own. For a
// frame that is not a request, Defer does nothing.
func (c *Call) Defer(m *wire.Message, work Work) {
	if c.live {
		c.relay.Defer(m, work)
	}
}

// OnSent registers a function that is called after the reply was written to the client, or
// with the error if it could not be written. The function must not block. It is called at most
// once, and not at all in a dry run or if there is no reply. A reply with such a function is
// written immediately, not in a batch with others.
func (c *Call) OnSent(f func(error)) {
	if c.live {
		c.sent = append(c.sent, f)
	}
}

// Sent returns the functions that OnSent registered. It is for code that runs layers.
func (c *Call) Sent() []func(error) { return c.sent }

// Cancelled reports whether the client has cancelled the call. It may cancel a call
// whose reply has already arrived.
func (c *Call) Cancelled() bool { return c.relay.Cancelled() }

// Hooked reports whether any hooks are registered, including those of OnReplyIf. It is for
// code that runs layers.
func (c *Call) Hooked() bool { return len(c.hooks)+len(c.late) > 0 }

// Hooks returns the hooks that want the reply, in the order of their registration. The first
// call of Hooks asks those of OnReplyIf, so the call must be over by then. It is for code that
// runs layers.
func (c *Call) Hooks() []ReplyHook {
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
func (l lateHook) wanted() (hook ReplyHook) {
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

// HoldsReply reports whether MustHold was called. It is for code that runs layers.
func (c *Call) HoldsReply() bool { return c.mustHold }

// Relay returns the relay that was passed to Reset. It is for code that runs layers.
func (c *Call) Relay() Relay { return c.relay }

// SetValue attaches a value to the call for the layers inside this one. The package that sets
// a value exports the type of its key. Only handlers may call it: a reply may arrive before the
// handlers of its call have returned, so hooks use [Call.Mark].
func (c *Call) SetValue(key, v any) {
	for i := range c.values {
		if c.values[i].key == key {
			c.values[i].value = v
			return
		}
	}
	c.values = append(c.values, value{key, v})
}

// Value returns the value that SetValue attached under key, or nil.
func (c *Call) Value(key any) any {
	for i := range c.values {
		if c.values[i].key == key {
			return c.values[i].value
		}
	}
	return nil
}

// Mark marks the call with key, for hooks of the same reply that run later.
func (c *Call) Mark(key any) { c.marks = append(c.marks, key) }

// Marked reports whether an earlier hook has called Mark with key.
func (c *Call) Marked(key any) bool { return slices.Contains(c.marks, key) }

// Shadow returns a call for a copy of c's frame, for a dry run of other layers. It has the
// values that were attached to c so far, and r is its relay. It does not change c, but c's
// listeners receive its notes, marked as notes of a dry run.
func (c *Call) Shadow(r Relay) *Call {
	s := &Call{relay: r, live: c.live, explained: c.explained, values: slices.Clone(c.values)}
	for _, listener := range c.listeners {
		s.listeners = append(s.listeners, func(_ *Call, n Note) {
			n.DryRun = true
			listener(c, n)
		})
	}
	return s
}

// A ReplyHook handles the reply to a call, from the server or from attache itself. It may
// edit the reply. If it returns an error, the error is logged and the reply is sent.
type ReplyHook func(ctx context.Context, reply *wire.Message) error

// Work answers a call on a goroutine of its own; see [Call.Defer].
type Work func(ctx context.Context, m *wire.Message) (reply *wire.Message)

type callKey struct{}

// A Context carries the call of the frame being handled. Package proxy creates
// one for each direction and sets Call before each frame, so that handling a
// frame does not allocate a context.
type Context struct {
	context.Context
	Call *Call
}

// Value implements context.Context.
func (c *Context) Value(key any) any {
	if key == (callKey{}) {
		return c.Call
	}
	return c.Context.Value(key)
}

// CallFrom returns the call in ctx. It is never nil for the ctx of a handler or hook.
func CallFrom(ctx context.Context) *Call {
	if c, ok := ctx.(*Context); ok {
		return c.Call
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
