// Package dryrun is the layer that lets other layers decide and keeps them from acting.
// It has their place in the chain, runs them on a copy of each frame, and passes the
// frame itself unchanged. So no layer has to know of dry runs.
//
// A layer inside sees what it would see otherwise: what the layers outside have
// attached to the call, the reply, its own notes and memory. What it does is logged and
// has no other effect:
//
//   - an edit of a call, a reply, or any other frame is logged;
//   - an answer is logged with its text, and the call goes on to the server;
//   - a frame that a layer drops is logged, and goes on.
//
// Two things happen as without a dry run, because decisions depend on them. A question
// of a layer's own ([middleware.Call.Ask]) is asked: for the server's tools and the
// client's roots. And where a layer waits ([middleware.Call.Suspend]) the frame waits
// with it, no longer than it would otherwise. If it went ahead, its reply could come
// before the decision, and calls would be judged in another order than theirs.
//
// A dry run cannot show what follows from an action: a client that was never shown the
// new name of a tool goes on calling the old one.
//
// The layer neither edits nor refuses. When a layer inside fails, that is logged, and
// the frame goes on.
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

// Options configure the layer of all connections.
type Options struct {
	// Show returns what a log may have of the raw JSON of the member at path, which
	// may be long or secret; nil shows no values. It is called from both directions.
	Show func(path []string, raw []byte) string

	// Log reports what would have been done, at info; nil discards it.
	Log *slog.Logger
}

// A Shared is the layer under one configuration, for all connections.
type Shared struct{ o Options }

// Compile returns the layer for all connections.
func Compile(o Options) *Shared {
	if o.Show == nil {
		o.Show = func([]string, []byte) string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Shared{o}
}

// ConnOptions configure the layer of one connection.
type ConnOptions struct {
	// Layers decide and do not act. The first one is the first on the way to the
	// server. Give them a log of [Mark].
	Layers []middleware.Layer
}

// A Conn is the layer of one connection. The chains inside it end in noteReached.
type Conn struct {
	Options
	layers             []middleware.Layer
	toServer, toClient middleware.Handler
}

// Connect returns the layer of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	return &Conn{
		Options:  s.o,
		layers:   o.Layers,
		toServer: middleware.Chain(noteReached, o.Layers...),
		toClient: middleware.Chain(noteReached, middleware.Reversed(o.Layers)...),
	}
}

// Layer returns the layer. It needs what the layers inside need.
func (c *Conn) Layer() middleware.Layer {
	layer := middleware.Needs(c.layers...)
	layer.Name, layer.Wrap = Name, c.wrap
	return layer
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		chain := c.toServer
		if m.From == wire.Server {
			chain = c.toClient
		}
		return c.begin(middleware.CallFrom(ctx), m).handle(ctx, m, chain, next)
	}
}

// noteReached is the end of the inner chain. A copy that gets there would have been sent.
func noteReached(ctx context.Context, _ *wire.Message) error {
	middleware.CallFrom(ctx).Relay().(*rehearsal).reached = true
	return nil
}

// begin returns the rehearsal of one frame.
func (c *Conn) begin(real *middleware.Call, m *wire.Message) *rehearsal {
	r := &rehearsal{conn: c, real: real, frame: m.Clone(), method: m.Method()}
	if m.MethodIs("tools/call") {
		r.tool = middleware.Clip(m.Name().Text())
	}
	r.call = real.Shadow(r)
	r.call.Listen(false, r.note)
	return r
}

// handle runs step on the copy, and then passes m unchanged. step is the inner chain,
// or what a layer does after it has waited.
func (r *rehearsal) handle(ctx context.Context, m *wire.Message, step, next middleware.Handler) error {
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

// try runs a layer inside. A panic counts as an error, and the frame goes on.
func try(ctx context.Context, step middleware.Handler, m *wire.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return step(ctx, m)
}

// reply runs the hooks of the layers inside on a copy of the call's reply.
func (r *rehearsal) reply(ctx context.Context, reply *wire.Message) error {
	r.replying, r.logged, r.refusal = true, false, nil
	if reply.TooLarge() && r.call.HoldsReply() {
		r.log("dry run: would withhold the reply", "why", "it is longer than the hold limit, and rules must be able to read it")
		return nil // without a dry run the hooks would see an error in its place
	}
	return r.hooks(ctx, reply, reply.Clone(), len(r.call.Hooks())-1, nil)
}

// hooks runs the hooks from index i down on the copy of a reply. first, if not nil, is
// what hook i does after it has waited.
func (r *rehearsal) hooks(ctx context.Context, reply, shadow *wire.Message, i int, first middleware.Handler) error {
	for ; i >= 0; i-- {
		step := first
		if first = nil; step == nil {
			step = middleware.Handler(r.call.Hooks()[i])
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
