// Package dryrun is the layer that logs what other layers would do, without any effect. It
// takes their place in the chain, runs them on a copy of each frame, and passes the frame
// itself unchanged. Layers need not know about dry runs.
//
// The layers inside see what they would see without a dry run: the values that the layers
// outside attached to the call, the reply, and their own notes and memory. What they do is
// logged and has no other effect:
//
//   - an edit of a call, a reply, or any other frame is logged;
//   - an answer is logged with its text, and the call is sent to the server;
//   - a dropped frame is logged and passed on.
//
// Two things are done as without a dry run, because decisions depend on them. A layer's own
// requests ([middleware.Call.Ask]) for the server's tools and the client's roots are sent.
// If a layer waits ([middleware.Call.Suspend]), the frame waits as long as it would
// otherwise. Without this, a reply could arrive before the decision, and calls would be
// judged out of order.
//
// A dry run cannot show the consequences of an act: a client that was never shown the new
// name of a tool continues to call the old one.
//
// The layer neither edits nor refuses. If a layer inside fails, this is logged and the frame
// passes.
package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Name is the name of the layer.
const Name = "dry-run"

// Options configure the layer.
type Options struct {
	// Layers are the layers to run dry, outermost first. Their loggers should be wrapped
	// with [Mark].
	Layers []middleware.Layer
	// Show returns the raw JSON of the member at path in a form that may be logged, because
	// it may be long or secret. If Show is nil, no values are logged. It is called from both
	// directions.
	Show func(path []string, raw []byte) string
	// Log receives what the layers would have done, at level info; nil discards it.
	Log *slog.Logger
}

// A dryRun is the layer of one connection. setReached is the last handler of both chains.
type dryRun struct {
	Options
	toServer, toClient middleware.Handler
}

// New returns the layer of one connection. It has the requirements of the layers inside.
func New(o Options) middleware.Layer {
	if o.Show == nil {
		o.Show = func([]string, []byte) string { return "" }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	d := &dryRun{
		Options:  o,
		toServer: middleware.Chain(setReached, o.Layers...),
		toClient: middleware.Chain(setReached, middleware.Reversed(o.Layers)...),
	}
	layer := middleware.Needs(o.Layers...)
	layer.Name, layer.Wrap = Name, d.wrap
	return layer
}

func (d *dryRun) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		chain := d.toServer
		if m.From == wire.Server {
			chain = d.toClient
		}
		return d.begin(middleware.CallFrom(ctx), m).handle(ctx, m, chain, next)
	}
}

// setReached is the last handler of the inner chains. A copy that reaches it would have been sent.
func setReached(ctx context.Context, _ *wire.Message) error {
	relayed.From(ctx).Relay().(*run).reached = true
	return nil
}

func (d *dryRun) begin(real *middleware.Call, m *wire.Message) *run {
	r := &run{dryRun: d, real: real, frame: m.Clone(), method: m.Method()}
	if m.MethodIs("tools/call") {
		r.tool = middleware.Clip(m.Name().Text())
	}
	of := (*relayed.Call)(real)
	r.call, r.listeners = of.Shadow(r), slices.Clone(of.Listeners())
	(*middleware.Call)(r.call).Listen(real.Explained(), r.note)
	return r
}

// handle runs step on the copy and then passes m unchanged. step is the inner chain, or the
// handler that a layer resumes after a wait.
func (r *run) handle(ctx context.Context, m *wire.Message, step, next middleware.Handler) error {
	if err := try(r.context(ctx), step, r.frame); err != nil {
		r.logFailure(err)
	}
	if w := r.takeWait(); w != nil {
		r.real.Suspend(m, w.ready, w.limit, func(ctx context.Context, m *wire.Message) error {
			return r.handle(ctx, m, w.resume, next)
		})
		return nil
	}
	r.requestDone(m)
	if r.answer == nil && !r.deferred && r.call.Hooked() {
		r.real.OnReply(r.reply)
	}
	return next(ctx, m)
}

// try calls step and returns a panic as an error.
func try(ctx context.Context, step middleware.Handler, m *wire.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return step(ctx, m)
}

// reply runs the hooks of the layers inside on a copy of the call's reply.
func (r *run) reply(ctx context.Context, reply *wire.Message) error {
	r.replying, r.logged, r.refusal = true, false, middleware.Note{}
	if reply.TooLarge() && r.call.HoldsReply() {
		r.log("dry run: would withhold the reply", "why", "it is longer than the hold limit, and rules must be able to read it")
		return nil // without a dry run the hooks would receive an error instead of the reply
	}
	return r.hooks(ctx, reply, reply.Clone(), len(r.call.Hooks())-1, nil)
}

// hooks runs the hooks from index i down to 0 on shadow, the copy of a reply. first, if not
// nil, is the handler that hook i resumes after a wait.
func (r *run) hooks(ctx context.Context, reply, shadow *wire.Message, i int, first middleware.Handler) error {
	for ; i >= 0; i-- {
		step := first
		if first = nil; step == nil {
			step = r.call.Hooks()[i]
		}
		if err := try(r.context(ctx), step, shadow); err != nil {
			r.logFailure(err)
		}
		if w := r.takeWait(); w != nil {
			r.real.Suspend(reply, w.ready, w.limit, func(ctx context.Context, reply *wire.Message) error {
				return r.hooks(ctx, reply, shadow, i, w.resume)
			})
			return nil
		}
	}
	r.replyDone(reply, shadow)
	return nil
}
