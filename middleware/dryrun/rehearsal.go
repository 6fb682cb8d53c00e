package dryrun

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A rehearsal takes the copy of one frame, and later that of its reply, through the
// layers inside. It is the relay of the copy's call. One goroutine at a time uses it:
// that of the frame's direction, and after the frame has gone on that of the reply's.
type rehearsal struct {
	conn         *Conn
	real         *middleware.Call // the call of the frame that goes on
	call         *middleware.Call // that of the copy
	frame        *wire.Message    // the copy
	method, tool string           // the frame's method, and the tool if it calls one

	reached  bool             // the copy would have been sent
	answer   *wire.Message    // what the copy was answered with
	refusal  *middleware.Note // why, as far as a layer noted it
	waits    *wait            // what the handler or hook that runs wants to wait for
	logged   bool             // an edit was logged
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
func (r *rehearsal) context(ctx context.Context) context.Context {
	return &middleware.Context{Context: ctx, Call: r.call}
}

func (r *rehearsal) takeWait() *wait {
	w := r.waits
	r.waits = nil
	return w
}

// maxInline is how often a hook may ask to wait where it cannot.
const maxInline = 8

// Answer implements middleware.Relay: the answer goes through the hooks of the
// layers outside the one that gives it, and no further.
func (r *rehearsal) Answer(ctx context.Context, reply *wire.Message) error {
	if r.answer != nil || r.reached {
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
			r.logFailure(err)
		}
	}
	r.answer = reply
	return nil
}

// Ask implements middleware.Relay. It asks, because decisions depend on the answer.
func (r *rehearsal) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message)) {
	r.real.Ask(to, method, params, limit, done)
}

// Suspend implements middleware.Relay. The frame itself is suspended when the handler
// or hook that runs has returned.
func (r *rehearsal) Suspend(_ *wire.Message, ready <-chan struct{}, limit time.Duration, resume middleware.Handler) {
	r.waits = &wait{ready, limit, resume}
}

// Defer implements middleware.Relay. The work is not done: it may have an effect.
func (r *rehearsal) Defer(*wire.Message, middleware.Work) { r.deferred = true }

// Cancelled implements middleware.Relay.
func (r *rehearsal) Cancelled() bool { return r.real.Cancelled() }

// note logs what a layer inside reports.
func (r *rehearsal) note(_ *middleware.Call, n middleware.Note) {
	switch n.Act {
	case middleware.Edited:
		r.logged = true
		r.edit(n)
	case middleware.Refused:
		kept := n
		kept.Before, kept.After = nil, nil // valid only now
		r.refusal = &kept
	case middleware.Failed:
		r.log("dry run: a rule could not do its work", "layer", n.Layer, "rule", n.Rule, "why", n.Why)
	case middleware.Skipped, middleware.Kept, middleware.Allowed:
	}
}

// edit logs an edit: the member, its value, and the value before.
func (r *rehearsal) edit(n middleware.Note) {
	verb := "change "
	switch {
	case n.Before == nil:
		verb = "fill "
	case n.After == nil:
		verb = "remove "
	}
	r.log("dry run: would "+verb+pathText(n.Path),
		"value", r.shown(n.Path, n.After), "from", n.Source, "instead_of", r.shown(n.Path, n.Before), "layer", n.Layer, "rule", n.Rule, "why", n.Why)
}

func (r *rehearsal) shown(path []string, raw []byte) string {
	if raw == nil {
		return ""
	}
	return r.conn.Show(path, raw)
}

// requestDone logs what the layers did to the copy of m on its way to the peer.
func (r *rehearsal) requestDone(m *wire.Message) {
	why := middleware.Note{}
	if r.refusal != nil {
		why = *r.refusal
	}
	switch {
	case r.answer != nil:
		r.log("dry run: would refuse the call", "layer", why.Layer, "rule", why.Rule, "why", why.Why, "answer", middleware.Clip(wire.ReplyText(r.answer.Root())))
	case r.deferred:
		r.log("dry run: would answer the call instead of the server", "layer", why.Layer, "rule", why.Rule, "why", why.Why)
	case !r.reached:
		r.log("dry run: would drop the message", "layer", why.Layer, "rule", why.Rule, "why", why.Why)
	case !r.logged && !bytes.Equal(r.frame.Frame(), m.Frame()):
		r.log("dry run: would change the message", "bytes_before", len(m.Frame()), "bytes_after", len(r.frame.Frame()))
	}
}

// replyDone logs what the layers did to the copy of a reply.
func (r *rehearsal) replyDone(reply, shadow *wire.Message) {
	switch {
	case r.refusal != nil:
		r.log("dry run: would replace the reply", "layer", r.refusal.Layer, "rule", r.refusal.Rule, "why", r.refusal.Why, "answer", middleware.Clip(wire.ReplyText(shadow.Root())))
	case !r.logged && !bytes.Equal(shadow.Frame(), reply.Frame()):
		r.log("dry run: would change the reply", "bytes_before", len(reply.Frame()), "bytes_after", len(shadow.Frame()))
	}
}

// logFailure logs the error of a layer inside. Without a dry run the error of a handler
// ends the session.
func (r *rehearsal) logFailure(err error) {
	r.conn.Log.WarnContext(r.real.LogContext(), "dry run: a layer could not do its work", "method", r.method, "err", err)
}

// log logs a line about the frame. It leaves out arguments without a value.
func (r *rehearsal) log(text string, args ...any) {
	attrs := []slog.Attr{slog.String("method", r.method)}
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
	r.conn.Log.LogAttrs(r.real.LogContext(), slog.LevelInfo, text, attrs...)
}
