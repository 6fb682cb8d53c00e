// Package dryrun is the layer that lets other layers decide without letting them
// act. It stands in the chain in their place, runs them on a copy of each frame,
// and passes the frame itself on as it came; so no layer knows of dry runs.
//
// A layer inside sees what it would see in earnest: what the layers outside have
// attached to the call, the reply, its own notes and memory. What it does ends
// here:
//
//   - an edit is logged, of a call, a reply, or anything else that passes;
//   - an answer is logged with its text, and the call goes on to the upstream;
//   - a frame that is dropped is logged, and goes on.
//
// Two things are done as in earnest, since what is decided hangs on them. A
// question of a layer's own ([middleware.Call.Ask]) is asked: for the upstream's
// tools and the client's roots. And where a layer waits ([middleware.Call.Suspend])
// the frame waits with it, for no longer than in earnest: letting it go ahead
// would have its reply overtake the decision, and calls be judged in another order
// than theirs.
//
// What a dry run cannot show is what follows from an action: a client that was
// never shown the new name of a tool goes on calling the old one.
//
// The layer neither edits nor refuses. What goes wrong in a layer inside is
// logged, and the frame goes on.
package dryrun

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Name is the name of the layer.
const Name = "dry-run"

// Options configure the layer.
type Options struct {
	// Layers are those that decide and do not act, first first on the way to the
	// upstream. Give them a log of [Mark].
	Layers []middleware.Layer

	// Show returns what a log may have of the raw JSON of the member at path, which
	// may be long or secret; nil shows no values. It is called from both directions.
	Show func(path []string, raw []byte) string

	// Log takes what would have been done, at info; nil discards it.
	Log *slog.Logger
}

// Layer returns the layer. It needs what the layers inside need.
func Layer(o Options) middleware.Layer {
	if o.Show == nil {
		o.Show = func([]string, []byte) string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &dryRun{
		o:        o,
		toServer: middleware.Chain(arrived, o.Layers...),
		toClient: middleware.Chain(arrived, middleware.Reversed(o.Layers)...),
	}
	layer := middleware.Needs(o.Layers...)
	layer.Name, layer.Wrap = Name, d.wrap
	return layer
}

// A dryRun is the layer. The chains inside it end in arrived.
type dryRun struct {
	o                  Options
	toServer, toClient middleware.Handler
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

// arrived is the end of the inner chain, where a frame would have left.
func arrived(ctx context.Context, _ *wire.Message) error {
	middleware.CallFrom(ctx).Relay().(*run).arrived = true
	return nil
}

// begin returns the run of one frame.
func (d *dryRun) begin(real *middleware.Call, m *wire.Message) *run {
	r := &run{d: d, real: real, frame: m.Clone(), what: m.Method()}
	if m.MethodIs("tools/call") {
		r.tool = cut(m.Name().Text())
	}
	r.call = real.Shadow(r)
	r.call.Listen(false, r.note)
	return r
}

// handle takes the copy through step, and then lets m go on as it is. step is the
// inner chain, or where a layer that has waited goes on.
func (r *run) handle(ctx context.Context, m *wire.Message, step, next middleware.Handler) error {
	if err := try(r.context(ctx), step, r.frame); err != nil {
		r.failed(err)
	}
	if w := r.takeWait(); w != nil {
		r.real.Suspend(m, w.ready, w.limit, func(ctx context.Context, m *wire.Message) error {
			return r.handle(ctx, m, w.resume, next)
		})
		return nil
	}
	r.requestDone(m)
	if r.answer == nil && !r.deferred && len(r.call.Hooks()) > 0 {
		r.real.OnReply(r.reply)
	}
	return next(ctx, m)
}

// try runs a layer inside. A panic is an error like any other: the frame goes on.
func try(ctx context.Context, step middleware.Handler, m *wire.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return step(ctx, m)
}

// reply takes a copy of the call's reply through the hooks of the layers inside.
func (r *run) reply(ctx context.Context, reply *wire.Message) error {
	r.replying, r.told, r.refusal = true, false, nil
	if reply.TooLarge() && r.call.HoldsReply() {
		r.log("dry run: would withhold the reply", "why", "it is longer than the hold limit, and rules must be able to read it")
		return nil // in earnest the hooks would see an error in its place
	}
	return r.hooks(ctx, reply, reply.Clone(), len(r.call.Hooks())-1, nil)
}

// hooks runs the hooks from index i down on the copy of a reply. first, if not
// nil, is where a hook that has waited goes on; it counts as hook i.
func (r *run) hooks(ctx context.Context, reply, shadow *wire.Message, i int, first middleware.Handler) error {
	for ; i >= 0; i-- {
		step := first
		if first = nil; step == nil {
			step = middleware.Handler(r.call.Hooks()[i])
		}
		if err := try(r.context(ctx), step, shadow); err != nil {
			r.failed(err)
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
