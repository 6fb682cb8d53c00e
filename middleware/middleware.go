// Package middleware is the contract between attache's relay and the layers
// that look at, change, answer or hold back messages.
//
// A layer is a [Middleware]: given the next [Handler] it returns its own, which
// may look at the message, edit it, and call next, or not:
//
//	func CountCalls(n *atomic.Int64) middleware.Middleware {
//		return func(next middleware.Handler) middleware.Handler {
//			return func(ctx context.Context, m *wire.Message) error {
//				if m.From == wire.Client && m.MethodIs("tools/call") {
//					n.Add(1)
//				}
//				return next(ctx, m)
//			}
//		}
//	}
//
// # Which runs first
//
// A frame from the client meets the layers in the order of the list given to
// [Chain], and then goes to the upstream. A request or notification from the
// server meets them in the opposite order, and then goes to the client: the
// upstream is innermost. m.From says which way a frame goes.
//
// A reply from the server never runs through handlers. A layer that wants the
// reply of a call says so while it handles the call, with [Call.OnReply]; the
// hooks run last-registered first, so the layer nearest the upstream sees the
// reply first. A call nobody asked about costs nothing on its way back, and nor does
// one whose hooks do not want the reply when it comes; see [Call.OnReplyIf]. Replies
// of the client, to requests of the server, run through the handlers like any
// other frame of the client's.
//
// # What not calling next means
//
// The frame goes no further. A request must then be answered, with
// [Call.Answer]: the answer goes through the hooks of the layers outside this
// one, as if the upstream had given it. If a layer drops a request and does not
// answer it, the relay answers with an internal error and logs the fault. A
// notification or reply is dropped. A layer calls next at most once.
//
// An error returned by a handler ends the session, and answers the request: it is
// for a peer that is gone, and a layer passes on what next returned. A layer that
// fails to do its work logs why. Then, if it enriches, it calls next; if it enforces,
// it answers with an error. If a handler or hook panics, the relay logs the stack and answers
// the call with an internal error; the session goes on.
//
// # Who owns the bytes
//
// The message and every slice taken from it belong to the relay and are valid
// until the handler or hook returns. [wire.Message.Clone] makes a copy to keep.
// Only a plain message can be edited (see [wire.Message.Plain]); an edit that
// cannot be made returns an error and leaves the message as it was. A message
// that was too large to hold comes to a hook as [wire.Message.TooLarge], with
// its id and kind alone, when its bytes have left; see [Call.MustHold].
//
// # Which goroutine
//
// Handlers and hooks of one direction run one at a time, in order of arrival,
// so a layer needs no lock for what only one direction touches. The two
// directions run at the same time: what a handler and a hook share needs a
// lock, and so does what [Call.Answer] makes a hook touch, since it runs hooks
// on the goroutine of the client's direction.
//
// A handler or hook must not block on a peer or a network. One that has to wait
// says so with [Call.Suspend], and asks a peer with [Call.Ask]. One that answers in
// place of the upstream, and needs time for it, uses [Call.Defer].
//
// # What a layer does not need
//
// [Relay], [Context] and the methods Reset, Hooked, Hooks, HoldsReply, Sent, Relay and
// Shadow of [Call] are for what runs layers: package proxy, package dryrun, and tests
// of a layer without a relay.
package middleware

import (
	"context"
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Handler takes one message. See the package comment for what it may do.
type Handler func(ctx context.Context, m *wire.Message) error

// A Middleware wraps the handler behind it.
type Middleware func(next Handler) Handler

// A Layer is a Middleware, its name, and what it needs of the relay. The relay
// does what any of its layers needs.
type Layer struct {
	// Name is what `attache explain --chain`, logs and audit records call the layer.
	Name string

	// Wrap is nil for a layer that sees no message and only has needs.
	Wrap Middleware

	// Enforces says that the layer refuses calls, hides something, or sets what the
	// client must not change. The relay then refuses every client frame that parsers
	// may read differently, or that is too large to hold. Otherwise such a frame
	// passes untouched, and the layers do not see it.
	Enforces bool

	// ArgumentNames are the argument names that the layer reads or writes, by depth
	// below params.arguments, "[]" for the elements of a list. A frame with two members that some
	// parser takes for the same one of them is not plain; see wire.Scanner.
	ArgumentNames [][]string

	// Guarded are names that must not reach the upstream, escaped or in any letter
	// case, in a frame that no layer can edit because parsers may read it differently:
	// such a frame is refused, whether rules enforce or not. For the names of secrets;
	// see [wire.Mentions].
	Guarded []string

	// Whole says that the layer has to read every client frame, as it may have to cut
	// something out: one that is too large to hold is refused, in a dry run too.
	Whole bool
}

// Chain returns the handler that runs the layers in order and ends in last.
func Chain(last Handler, layers ...Layer) Handler {
	for i := len(layers) - 1; i >= 0; i-- {
		if layers[i].Wrap != nil {
			last = layers[i].Wrap(last)
		}
	}
	return last
}

// Needs returns a layer that has the needs of all the layers, and neither a name
// nor a Wrap.
func Needs(layers ...Layer) Layer {
	var all Layer
	for _, l := range layers {
		all.Enforces, all.Whole = all.Enforces || l.Enforces, all.Whole || l.Whole
		all.Guarded = union(all.Guarded, l.Guarded)
		for depth, names := range l.ArgumentNames {
			if depth == len(all.ArgumentNames) {
				all.ArgumentNames = append(all.ArgumentNames, nil)
			}
			all.ArgumentNames[depth] = union(all.ArgumentNames[depth], names)
		}
	}
	return all
}

// union appends to all what it does not have of more.
func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Reversed returns the layers in opposite order: the chain of the other
// direction.
func Reversed(layers []Layer) []Layer {
	out := make([]Layer, 0, len(layers))
	for i := len(layers) - 1; i >= 0; i-- {
		out = append(out, layers[i])
	}
	return out
}

// A ReplyHook takes the reply to a call: the server's, or one that attache gave
// itself. It may edit it. An error is logged and the reply goes on.
type ReplyHook func(ctx context.Context, reply *wire.Message) error

// Work answers a call that was taken off its direction; see [Call.Defer].
type Work func(ctx context.Context, m *wire.Message) (reply *wire.Message)

type callKey struct{}

// A Context carries the call of the frame being handled. Package proxy makes
// one for each direction and sets Call before each frame, so that handling a
// frame allocates none.
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

// CallFrom returns the call of the frame that ctx was handed with; it is never
// nil for the ctx of a handler or hook.
func CallFrom(ctx context.Context) *Call {
	if c, ok := ctx.(*Context); ok {
		return c.Call
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
