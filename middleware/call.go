package middleware

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Call is a request of the client, from its arrival until its reply has been sent. Every frame
// that a handler sees has a Call, so a layer need not check for nil; for a frame that is not a
// request of the client, OnReply and Answer do nothing.
//
// A Call is valid until its last hook has returned. It is then reused for another request.
// Only handlers and hooks may call its methods.
type Call relayed.Call

// relayed returns the call as its relay sees it.
func (c *Call) relayed() *relayed.Call { return (*relayed.Call)(c) }

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

// OnReply registers a hook for the call's reply. Call it before next: once the call has been
// sent, its reply may arrive at any time. A cancelled call may have no reply. If the upstream
// ends, the reply is an error from attache.
func (c *Call) OnReply(h ReplyHook) { c.relayed().OnReply(h) }

// OnReplyIf is like OnReply for a hook that may not want the reply. A reply that no hook
// wants passes unread. One LateHook may be registered for many calls.
func (c *Call) OnReplyIf(h LateHook) { c.relayed().OnReplyIf(h) }

// MustHold declares that the client must not see the reply unless a hook has read it, because
// something may have to be removed. A reply over the hold limit, which would otherwise stream
// through, is dropped, and the call is answered with an error, which the hooks see instead. Call
// it before next.
//
// While such a call is in flight, the relay also drops every line over the hold limit if it did
// not find an id in the part that it read, because that line may be the reply.
func (c *Call) MustHold() { c.relayed().MustHold() }

// Answer answers the call in place of the upstream. The layer then does not call
// next. reply must have the request's raw id. For a nil reply, or one with another id,
// the relay answers with an internal error when the handler has returned.
func (c *Call) Answer(ctx context.Context, reply *wire.Message) error {
	r := c.relayed()
	if !r.Live() {
		return nil
	}
	return r.Relay().Answer(ctx, reply)
}

// Ask sends a request from attache itself to a peer. It calls done once: with the reply, which
// no layer sees, or with nil if no reply arrived within limit. done runs on another goroutine. It
// must not block, and must lock what it shares. It may keep the reply. It may call Ask again,
// even after the call is over, but no other method of the call.
//
// Ask does not check whether the protocol allows the method at that moment; the layer must.
func (c *Call) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(reply *wire.Message)) {
	c.relayed().Relay().Ask(to, method, params, limit, done)
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
	c.relayed().Relay().Suspend(m, ready, limit, resume)
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
	if r := c.relayed(); r.Live() {
		r.Relay().Defer(m, work)
	}
}

// OnSent registers a function that is called after the reply was written to the client, or
// with the error if it could not be written. The function must not block. It is called at most
// once, and not at all in a dry run or if there is no reply. A reply with such a function is
// written immediately, not in a batch with others.
func (c *Call) OnSent(f func(error)) { c.relayed().OnSent(f) }

// Cancelled reports whether the client has cancelled the call. It may cancel a call
// whose reply has already arrived.
func (c *Call) Cancelled() bool { return c.relayed().Relay().Cancelled() }

// SetValue attaches a value to the call for the layers inside this one. The package that sets
// a value exports the type of its key. Only handlers may call it: a reply may arrive before the
// handlers of its call have returned, so hooks use [Call.Mark].
func (c *Call) SetValue(key, v any) { c.relayed().SetValue(key, v) }

// Value returns the value that SetValue attached under key, or nil.
func (c *Call) Value(key any) any { return c.relayed().Value(key) }

// Mark marks the call with key, for hooks of the same reply that run later.
func (c *Call) Mark(key any) { c.relayed().Mark(key) }

// Marked reports whether an earlier hook has called Mark with key.
func (c *Call) Marked(key any) bool { return c.relayed().Marked(key) }

// A ReplyHook handles the reply to a call, from the server or from attache itself. It may
// edit the reply. If it returns an error, the error is logged and the reply is sent.
type ReplyHook func(ctx context.Context, reply *wire.Message) error

// Work answers a call on a goroutine of its own; see [Call.Defer].
type Work func(ctx context.Context, m *wire.Message) (reply *wire.Message)

// CallFrom returns the call in ctx. It is never nil for the ctx of a handler or hook.
func CallFrom(ctx context.Context) *Call { return (*Call)(relayed.From(ctx)) }
