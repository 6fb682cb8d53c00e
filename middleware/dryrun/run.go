package dryrun

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A run is one frame's way through the layers inside. It is the relay of their
// call. What touches it runs in the direction of the frame, and once the frame
// has gone on, in that of its reply.
type run struct {
	d          *dryRun
	real       *middleware.Call // the call of the frame that goes on
	call       *middleware.Call // that of the copy
	frame      *wire.Message    // the copy
	what, tool string           // the frame's method, and the tool if it calls one

	arrived  bool
	answer   *wire.Message    // what the copy was answered with
	refusal  *middleware.Note // why, as far as it was told
	waits    *wait            // what the handler or hook that runs wants to wait for
	told     bool             // an edit was logged
	deferred bool             // a layer inside would answer the call later
	replying bool
}

// A wait is what a layer inside waits for.
type wait struct {
	ready  <-chan struct{}
	limit  time.Duration
	resume middleware.Handler
}

// context returns ctx as the context of the copy.
func (r *run) context(ctx context.Context) context.Context {
	return &middleware.Context{Context: ctx, Call: r.call}
}

func (r *run) takeWait() *wait {
	w := r.waits
	r.waits = nil
	return w
}

// maxInline is how often a hook may ask to wait where it cannot.
const maxInline = 8

// Answer implements middleware.Relay: the answer goes through the hooks of the
// layers outside the one that gives it, and no further.
func (r *run) Answer(ctx context.Context, reply *wire.Message) error {
	if r.answer != nil || r.arrived {
		return nil
	}
	hooks := r.call.Hooks()
	for i := len(hooks) - 1; i >= 0; i-- {
		err := hooks[i](r.context(ctx), reply)
		for range maxInline {
			w := r.takeWait()
			if w == nil {
				break
			}
			err = w.resume(r.context(ctx), reply)
		}
		if err != nil {
			r.failed(err)
		}
	}
	r.answer = reply
	return nil
}

// Ask implements middleware.Relay: what is decided hangs on the answer.
func (r *run) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message)) {
	r.real.Ask(to, method, params, limit, done)
}

// Suspend implements middleware.Relay. The frame itself is held back when the
// handler or hook that runs has returned.
func (r *run) Suspend(_ *wire.Message, ready <-chan struct{}, limit time.Duration, resume middleware.Handler) {
	r.waits = &wait{ready, limit, resume}
}

// Defer implements middleware.Relay. The work is not done: it may have an effect.
func (r *run) Defer(*wire.Message, middleware.Work) { r.deferred = true }

// Cancelled implements middleware.Relay.
func (r *run) Cancelled() bool { return r.real.Cancelled() }

// note logs what a layer inside says it did.
func (r *run) note(_ *middleware.Call, n middleware.Note) {
	switch n.Act {
	case middleware.Edited:
		r.told = true
		r.edit(n)
	case middleware.Refused:
		kept := n
		kept.Before, kept.After = nil, nil // valid for now alone
		r.refusal = &kept
	case middleware.Failed:
		r.log("dry run: a rule could not do its work", "layer", n.Layer, "rule", n.Rule, "why", n.Why)
	case middleware.Skipped, middleware.Kept, middleware.Allowed:
	}
}

// edit logs an edit: what would be where, and instead of what.
func (r *run) edit(n middleware.Note) {
	verb := "change "
	switch {
	case n.Before == nil:
		verb = "fill "
	case n.After == nil:
		verb = "remove "
	}
	r.log("dry run: would "+verb+place(n.Path),
		"value", r.shown(n.Path, n.After), "from", n.Source, "instead_of", r.shown(n.Path, n.Before), "layer", n.Layer, "rule", n.Rule, "why", n.Why)
}

func (r *run) shown(path []string, raw []byte) string {
	if raw == nil {
		return ""
	}
	return r.d.o.Show(path, raw)
}

// requestDone logs what became of the copy on its way to the peer; m is the frame
// itself.
func (r *run) requestDone(m *wire.Message) {
	why := middleware.Note{}
	if r.refusal != nil {
		why = *r.refusal
	}
	switch {
	case r.answer != nil:
		r.log("dry run: would refuse the call", "layer", why.Layer, "rule", why.Rule, "why", why.Why, "answer", cut(answerText(r.answer)))
	case r.deferred:
		r.log("dry run: would answer the call instead of the server", "layer", why.Layer, "rule", why.Rule, "why", why.Why)
	case !r.arrived:
		r.log("dry run: would drop the message", "layer", why.Layer, "rule", why.Rule, "why", why.Why)
	case !r.told && !bytes.Equal(r.frame.Frame(), m.Frame()):
		r.log("dry run: would change the message", "bytes_before", len(m.Frame()), "bytes_after", len(r.frame.Frame()))
	}
}

// replyDone logs what became of the copy of a reply.
func (r *run) replyDone(reply, shadow *wire.Message) {
	switch {
	case r.refusal != nil:
		r.log("dry run: would replace the reply", "layer", r.refusal.Layer, "rule", r.refusal.Rule, "why", r.refusal.Why, "answer", cut(answerText(shadow)))
	case !r.told && !bytes.Equal(shadow.Frame(), reply.Frame()):
		r.log("dry run: would change the reply", "bytes_before", len(reply.Frame()), "bytes_after", len(shadow.Frame()))
	}
}

// failed logs the error of a layer inside. In earnest one of a handler ends the
// session.
func (r *run) failed(err error) {
	r.d.o.Log.WarnContext(r.real.LogContext(), "dry run: a layer could not do its work", "method", r.what, "err", err)
}

// log logs a line about the frame, without what is not known.
func (r *run) log(text string, args ...any) {
	attrs := []slog.Attr{slog.String("method", r.what)}
	if r.tool != "" {
		attrs[0] = slog.String("tool", r.tool)
	}
	if r.replying {
		attrs = append(attrs, slog.Bool("reply", true))
	}
	for i := 0; i+1 < len(args); i += 2 {
		if args[i+1] != "" {
			attrs = append(attrs, slog.Any(args[i].(string), args[i+1]))
		}
	}
	r.d.o.Log.LogAttrs(r.real.LogContext(), slog.LevelInfo, text, attrs...)
}
