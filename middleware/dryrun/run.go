package dryrun

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A run is the dry run of one frame and of its reply. It is the relay of the copy's call.
// It is used by one goroutine at a time: first by that of the frame's direction and, once the
// frame has been passed on, by that of the reply's.
type run struct {
	*dryRun
	real         *middleware.Call // the call of the frame itself
	call         *relayed.Call    // the call of the copy
	listeners    []any            // of the real call
	frame        *wire.Message    // the copy
	method, tool string           // the frame's method, and the tool of a tools/call

	reached  bool            // the copy would have been sent
	answer   *wire.Message   // the answer to the copy, nil if there is none
	refusal  middleware.Note // the note about a refusal, if there was one
	pending  *wait           // the wait that the current handler or hook asked for
	logged   bool            // an edit was logged
	deferred bool            // a layer inside would answer the call later
	replying bool            // the reply has arrived
}

// A wait is a call of Suspend by a layer inside.
type wait struct {
	ready  <-chan struct{}
	limit  time.Duration
	resume middleware.Handler
}

// context returns ctx with the call of the copy.
func (r *run) context(ctx context.Context) context.Context {
	return &relayed.Context{Context: ctx, Call: r.call}
}

func (r *run) takeWait() *wait {
	w := r.pending
	r.pending = nil
	return w
}

// maxInline is the number of times that a hook may ask to wait for an answer, which cannot wait.
const maxInline = 8

// Answer implements relayed.Relay. It runs the answer through the hooks of the layers
// outside the one that answers, and does not send it.
func (r *run) Answer(ctx context.Context, reply *wire.Message) error {
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

// Ask implements relayed.Relay. It sends the request, because decisions depend on the reply.
func (r *run) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message)) {
	r.real.Ask(to, method, params, limit, done)
}

// Suspend implements relayed.Relay. The frame itself is suspended after the current
// handler or hook has returned.
func (r *run) Suspend(_ *wire.Message, ready <-chan struct{}, limit time.Duration, resume relayed.Handler) {
	r.pending = &wait{ready, limit, resume}
}

// Defer implements relayed.Relay. It does not call the work, which may have an effect.
func (r *run) Defer(*wire.Message, relayed.Work) { r.deferred = true }

// Cancelled implements relayed.Relay.
func (r *run) Cancelled() bool { return r.real.Cancelled() }

// note passes a note of a layer inside to the listeners of the real call, marked as a note of a dry run,
// and logs or remembers it.
func (r *run) note(_ *middleware.Call, n middleware.Note) {
	n.DryRun = true
	for _, listener := range r.listeners {
		listener.(func(*middleware.Call, middleware.Note))(r.real, n)
	}
	switch n.Act {
	case middleware.Edited:
		r.logged = true
		r.logEdit(n)
	case middleware.Refused:
		n.Before, n.After = nil, nil // only valid during this call
		r.refusal = n
	case middleware.Failed:
		r.log("dry run: a rule could not do its work", "layer", n.Layer, "rule", n.Rule, "why", n.Why)
	case middleware.Kept:
		r.log("dry run: would keep "+pathText(n.Path), "value", r.shown(n.Path, n.Before),
			"rule_value", r.shown(n.Path, n.After), "from", n.Source, "layer", n.Layer, "rule", n.Rule)
	case middleware.Skipped, middleware.Allowed:
	}
}

// logEdit logs an edit: the member, its new value, and its old one.
func (r *run) logEdit(n middleware.Note) {
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

// pathText returns a path for people, without the params of a call.
func pathText(path []string) string {
	if len(path) > 1 && path[0] == "params" {
		path = path[1:]
	}
	return middleware.Clip(strings.Join(path, "."))
}

func (r *run) shown(path []string, raw []byte) string {
	if raw == nil {
		return ""
	}
	return r.Show(path, raw)
}

// requestDone logs what the layers did to the copy of m.
func (r *run) requestDone(m *wire.Message) {
	why := r.refusal
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

// replyDone logs what the layers did to shadow, the copy of a reply.
func (r *run) replyDone(reply, shadow *wire.Message) {
	switch {
	case r.refusal.Act == middleware.Refused:
		r.log("dry run: would replace the reply", "layer", r.refusal.Layer, "rule", r.refusal.Rule, "why", r.refusal.Why, "answer", middleware.Clip(wire.ReplyText(shadow.Root())))
	case !r.logged && !bytes.Equal(shadow.Frame(), reply.Frame()):
		r.log("dry run: would change the reply", "bytes_before", len(reply.Frame()), "bytes_after", len(shadow.Frame()))
	}
}

// logFailure logs the error of a layer inside. Without a dry run, the error of a handler
// would end the session.
func (r *run) logFailure(err error) {
	r.Log.WarnContext(r.real.LogContext(), "dry run: a layer could not do its work", "method", r.method, "err", err)
}

// log logs a message about the frame. It omits arguments that are "".
func (r *run) log(text string, args ...any) {
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
	r.Log.LogAttrs(r.real.LogContext(), slog.LevelInfo, text, attrs...)
}
