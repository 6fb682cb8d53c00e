package middleware

import (
	"context"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Relay does for one Call what its methods of the same names promise. Package
// proxy has the one implementation.
type Relay interface {
	Answer(ctx context.Context, reply *wire.Message) error
	Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message))
	Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume Handler)
	Defer(m *wire.Message, work Work)
	Cancelled() bool
}

// A Call is a request of the client from its arrival until its one reply has left. Every frame
// that a handler sees comes with a Call, so a layer need not check for one; for a frame that
// is not a request of the client, OnReply and Answer do nothing.
//
// A Call is valid until its last hook has returned. It is then used again for another request.
// Only handlers and hooks may call its methods.
type Call struct {
	relay     Relay
	live      bool
	mustHold  bool
	explained bool
	hooks     []ReplyHook
	late      []lateHook
	lateRoom  [1]lateHook // of late: the other direction, on another processor, finds it with the call
	sent      []func(error)
	values    []value
	listeners []func(*Call, Note)
}

type value struct{ key, value any }

// A LateHook is a hook that decides when the call is over whether it wants the reply.
type LateHook interface {
	// Wanted is called once, when the reply has come and has not been read, or the client has
	// cancelled the call. It reports whether Reply is to be called if there is a reply. It runs
	// in either direction and must not block; of the call it may use Cancelled alone.
	Wanted() bool
	// Reply is the [ReplyHook].
	Reply(ctx context.Context, reply *wire.Message) error
}

// A lateHook is a LateHook and its place among the hooks.
type lateHook struct {
	index int
	hook  LateHook
}

// Reset makes c the call of a new frame. request says whether the frame is a
// request of the client's. For what runs layers.
func (c *Call) Reset(r Relay, request bool) {
	if c.relay != r { // written once: a late reply to Ask may still be using it
		c.relay = r
	}
	clear(c.hooks)
	clear(c.values)
	clear(c.listeners)
	clear(c.sent)
	c.live, c.hooks, c.values, c.sent = request, c.hooks[:0], c.values[:0], c.sent[:0]
	c.late = c.late[:0]
	c.mustHold, c.explained, c.listeners = false, false, c.listeners[:0]
}

// OnReply registers a hook for the call's reply. Call it before next: once the call has been
// sent, its reply may arrive at any time. A cancelled call may have no reply. When the
// upstream ends, the reply is an error from attache.
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

// MustHold says that the client must not see the reply unless a hook has read it, because
// something may have to be removed. A reply over the hold limit, which would otherwise stream
// through, is dropped, and the call is answered with an error that the hooks see instead. Call
// it before next.
//
// While such a call is in flight, the relay treats any line over the hold limit in the same
// way if its id is not in the part that was read: it may be the reply.
func (c *Call) MustHold() { c.mustHold = c.live }

// Answer answers the call in place of the upstream. The layer does not call
// next. reply must carry the request's raw id.
func (c *Call) Answer(ctx context.Context, reply *wire.Message) error {
	if !c.live {
		return nil
	}
	return c.relay.Answer(ctx, reply)
}

// Ask sends a request of attache's own to a peer. It calls done once: with the reply, which no
// layer sees, or with nil if no reply came within limit. done runs on another goroutine. It
// must not block, and it needs a lock for what it shares; the reply is done's to keep. done
// may call Ask again, and no other method of the call; this works also when the call is over.
//
// The layer must know which methods the protocol allows at that moment. Ask does not check.
func (c *Call) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(reply *wire.Message)) {
	c.relay.Ask(to, method, params, limit, done)
}

// Suspend holds back m, the message being handled, until ready is closed, the limit has
// passed, or the session ends. It then calls resume with a copy of m; resume usually calls
// next. The handler or hook that calls Suspend returns nil immediately and does nothing more.
//
// While a frame from the client is held back, the frames behind it wait too, so their order
// stays. Replies of the client do not wait, because the layer may be waiting for one of them.
// While a reply from the server is held back, other frames from the server do not wait.
//
// Some messages cannot wait and are resumed immediately, as if the limit had passed: members
// of a batch, messages that belong to no call, a reply that is too large to hold, and a reply
// with which all waiting replies would exceed the hold limit.
func (c *Call) Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume Handler) {
	c.relay.Suspend(m, ready, limit, resume)
}

// Defer has work answer the call, on a goroutine of its own, while the frames
// behind it go on. The layer does not call next and returns nil. work gets a copy of
// m, the message being handled, and returns the reply, which carries the request's
// raw id and goes through the hooks of the layers outside this one. A call has one
// answer: what work returns is dropped if the call was cancelled meanwhile, and if it
// returns nil or panics, the call is answered with an internal error.
//
// ctx ends when the client cancels the call, and at the end of the session; a client
// that closed its input in good order is given half a second before that. The
// session waits a moment for what work then returns. The answer to a member of a
// batch goes with those that are ready when it is, or in an array of its own. For a
// frame that is no request Defer does nothing.
func (c *Call) Defer(m *wire.Message, work Work) {
	if c.live {
		c.relay.Defer(m, work)
	}
}

// OnSent registers a function that is called after the reply was written to the client, or
// could not be written. The function must not block. It is called at most once, and not at all
// if there is no reply or in a dry run. A reply with such a function is written immediately,
// not collected with others.
func (c *Call) OnSent(f func(error)) {
	if c.live {
		c.sent = append(c.sent, f)
	}
}

// Sent returns what OnSent registered. For what runs layers.
func (c *Call) Sent() []func(error) { return c.sent }

// Cancelled reports whether the client has cancelled the call, which may
// happen while its reply is on the way.
func (c *Call) Cancelled() bool { return c.relay.Cancelled() }

// Hooked reports whether hooks are registered, wanted or not. For what runs layers.
func (c *Call) Hooked() bool { return len(c.hooks)+len(c.late) > 0 }

// Hooks returns the hooks that want the reply, first registered first. The first time it
// asks those of OnReplyIf, so it is called when the call is over. For what runs layers.
func (c *Call) Hooks() []ReplyHook {
	if len(c.late) > 0 {
		c.decide()
	}
	return c.hooks
}

// decide asks the late hooks, and puts those that want the reply in their places.
func (c *Call) decide() {
	for i := len(c.late) - 1; i >= 0; i-- {
		if l := c.late[i]; l.hook.Wanted() {
			c.hooks = slices.Insert(c.hooks, l.index, l.hook.Reply)
		}
	}
	c.late = c.late[:0]
}

// HoldsReply reports whether MustHold was called. For what runs layers.
func (c *Call) HoldsReply() bool { return c.mustHold }

// Relay returns what Reset was given. For what runs layers.
func (c *Call) Relay() Relay { return c.relay }

// SetValue attaches a value to the call for the layers further in. The package that sets a
// value exports the type of its key.
func (c *Call) SetValue(key, v any) {
	for i := range c.values {
		if c.values[i].key == key {
			c.values[i].value = v
			return
		}
	}
	c.values = append(c.values, value{key, v})
}

// Value returns what SetValue attached under key, or nil.
func (c *Call) Value(key any) any {
	for i := range c.values {
		if c.values[i].key == key {
			return c.values[i].value
		}
	}
	return nil
}

// Shadow returns a call for a copy of c's frame that runs through other layers, as in a dry
// run. It has the values that were attached to c so far, and r is its relay. It does not
// change c, but c's listeners get its notes, marked as notes of a dry run.
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
