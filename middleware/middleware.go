// Package middleware defines the contract between attache's relay and the layers
// that inspect, edit, answer or delay messages.
//
// A layer is a [Middleware]: it wraps the next [Handler] in its own, which may inspect
// the message, edit it, and call next or not:
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
// A frame from the client runs through the layers in the order of the list passed to
// [Chain] and is then sent to the upstream. A request or notification from the server
// runs through them in the opposite order and is then sent to the client: the upstream
// is innermost. m.From is the sender of a frame.
//
// A reply from the server never runs through handlers. A layer that wants the reply of a
// call registers a hook with [Call.OnReply] while it handles the call. Hooks run in the
// reverse order of their registration, so the layer nearest the upstream sees the reply
// first. A reply passes unread if it has no hooks, or if none of them wants it when it
// arrives; see [Call.OnReplyIf]. Replies of the client, to requests of the server, run
// through the handlers like any other frame from the client.
//
// # The order of attache's layers
//
// A chain of the packages below middleware has this order, from the client to the server. Leave
// out what you do not need:
//
//	trace                 sees every message as the client has it
//	audit                 sees every decision of the layers below
//	announce
//	capture               attaches the session's context, which the layers below read
//	rewrite               gives tools their names on the server
//	access.Conn.ListLayer filters the list before arguments edits it
//	arguments             completes the call
//	access.Conn.Layer     judges the call as it will be sent
//	audit.Conn.Gate       records the call before it is sent
//	briefing, teams       add to results, but not to refusals
//	Catalog               reads the lists as the server sent them
//
// # What not calling next means
//
// If a layer does not call next, the frame stops there. The layer must then answer a
// request with [Call.Answer]: the answer goes through the hooks of the layers outside
// this one, as if the upstream had sent it. If the layer does not, the relay answers with
// an internal error and logs the fault. A notification or reply is dropped. A layer calls
// next at most once.
//
// If a handler returns an error, the relay answers the request with an error and ends the
// session. This is for a peer that is gone, and a layer returns the error of next. A layer
// that fails to do its work logs the reason. Then, if it enriches, it calls next; if it
// enforces, it answers with an error. If a handler or hook panics, the relay logs the stack
// and answers the call with an internal error; the session continues. A panic of another
// function of a layer, such as done of [Call.Ask], is only logged.
//
// # Who owns the bytes
//
// The message and every slice of it belong to the relay and are valid until the handler
// or hook returns. [wire.Message.Clone] returns a copy that may be kept. Only a plain
// message can be edited (see [wire.Message.Plain]); an edit that fails returns an error
// and leaves the message unchanged. For a reply that was too large to hold,
// [wire.Message.TooLarge] returns true: hooks receive only its id and kind, after its
// bytes have been sent; see [Call.MustHold].
//
// # Which goroutine
//
// The handlers and hooks of one direction run one at a time, in order of arrival, so a
// layer needs no lock for data that only one direction uses. The two directions run
// concurrently: data that a handler and a hook share needs a lock. This includes all that
// hooks use if [Call.Answer] may run them, because it runs them on the goroutine of the
// client's direction.
//
// A handler or hook must not block on a peer or the network. To wait, use [Call.Suspend];
// to ask a peer, [Call.Ask]. A layer that answers in place of the upstream, and needs time
// for it, uses [Call.Defer].
//
// # Tests
//
// Package proxytest tests a layer in a relay, with a client and a server that follow a script.
package middleware

import (
	"context"
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Handler handles one message. See the package comment for what it may do.
type Handler func(ctx context.Context, m *wire.Message) error

// A Middleware wraps the handler behind it.
type Middleware func(next Handler) Handler

// A Layer is a Middleware with its name and its requirements of the relay. The relay
// meets the requirements of all its layers.
type Layer struct {
	// Name is the layer's name in `attache explain --chain`, logs and audit records.
	Name string

	// Wrap is nil for a layer that sees no messages and only has requirements.
	Wrap Middleware

	// Enforces means that the layer refuses calls, hides something, or sets values that the
	// client must not change. The relay then refuses every client frame that parsers may
	// read differently, or that is too large to hold. Otherwise such a frame passes
	// unchanged, and the layers do not see it.
	Enforces bool

	// ArgumentNames are the argument names that the layer reads or writes, by depth below
	// params.arguments, with "[]" for the elements of a list. A frame is not plain if some
	// parser may read two of its members as the same one of these names; see wire.Scanner.
	ArgumentNames [][]string

	// Guarded are names, usually of secrets, that must not reach the upstream in a frame that
	// no layer can edit because parsers may read it differently. A frame that contains one,
	// escaped or in any letter case, is refused even if no layer enforces; see [wire.Mentions].
	Guarded []string

	// Whole means that the layer must read every client frame, because it may have to remove
	// something. A frame that is too large to hold is refused, also in a dry run.
	Whole bool
}

// Chain returns the handler that runs the layers in order and then last.
func Chain(last Handler, layers ...Layer) Handler {
	for i := len(layers) - 1; i >= 0; i-- {
		if layers[i].Wrap != nil {
			last = layers[i].Wrap(last)
		}
	}
	return last
}

// Needs returns a layer that has the requirements of all the layers, but no name and no
// Wrap.
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

// union appends the strings of more that all does not contain.
func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Reversed returns the layers in reverse order, for messages from the server.
func Reversed(layers []Layer) []Layer {
	out := slices.Clone(layers)
	slices.Reverse(out)
	return out
}
