package proxy_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// scriptLayers are the layers that the scripts in testdata can use.
var scriptLayers = map[string]func(s *proxytest.Session, arg string) middleware.Layer{
	"see":        seeLayer,
	"edit":       editLayer,
	"answer":     answerLayer,
	"drop":       dropLayer,
	"hold":       holdLayer,
	"hold-reply": holdReplyLayer,
	"ask":        askLayer,
	"rude":       rudeLayer,
	"must-hold":  mustHoldLayer,
	"panic":      panicLayer,
	"twice":      twiceLayer,
	"later":      laterLayer,
}

// enforceLayer makes the relay refuse messages that parsers read differently.
var enforceLayer = middleware.Layer{Name: "enforce", Enforces: true}

// layer returns a layer that calls h with each message and its call.
func layer(name string, h func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error) middleware.Layer {
	return middleware.Layer{Name: name, Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			return h(ctx, middleware.CallFrom(ctx), m, next)
		}
	}}
}

// seeLayer notes each message and each reply.
func seeLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("see", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		s.Note("%s %s %s %s", arg, m.From, describe(m), m.ID())
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			s.Note("%s reply %s %s", arg, describe(reply), reply.ID())
			return nil
		})
		return next(ctx, m)
	})
}

func describe(m *wire.Message) string {
	text := m.Kind().String()
	if m.Method() != "" {
		text += " " + m.Method()
	}
	if m.TooLarge() {
		text += " too large"
	}
	return text
}

// editLayer adds a member to the arguments of every call of a tool, and to
// every result.
func editLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("edit", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.MethodIs("tools/call") {
			noteEditError(s, m.Set([]byte("true"), "params", "arguments", arg))
		}
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			if reply.Kind() == wire.Result {
				noteEditError(s, reply.Set([]byte("true"), "result", arg))
			}
			return nil
		})
		return next(ctx, m)
	})
}

func noteEditError(s *proxytest.Session, err error) {
	if err != nil {
		s.Note("edit: %v", err)
	}
}

// answerLayer answers calls of the tool arg and requests with the method arg. With "nil" and
// "other_id" it breaks the contract.
func answerLayer(_ *proxytest.Session, arg string) middleware.Layer {
	return layer("answer", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.From == wire.Client && m.Kind() == wire.Request && (m.Name().Equals(arg) || m.MethodIs(arg)) {
			switch arg {
			case "nil":
				return call.Answer(ctx, nil)
			case "other_id":
				return call.Answer(ctx, wire.ResultReply([]byte("7"), []byte(`"answered"`)))
			}
			return call.Answer(ctx, wire.ResultReply(m.ID(), []byte(`"answered"`)))
		}
		return next(ctx, m)
	})
}

// dropLayer drops messages with one method. It also drops requests, which breaks the contract.
func dropLayer(_ *proxytest.Session, arg string) middleware.Layer {
	return layer("drop", func(ctx context.Context, _ *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.MethodIs(arg) {
			return nil
		}
		return next(ctx, m)
	})
}

// holdLayer suspends calls of the tool "hold" once for each duration in arg, which are separated
// by commas.
func holdLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("hold", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if !m.Name().Equals("hold") {
			return next(ctx, m)
		}
		var again func(times []string) middleware.Handler
		again = func(times []string) middleware.Handler {
			return func(ctx context.Context, m *wire.Message) error {
				if len(times) == 0 {
					return next(ctx, m)
				}
				limit, _ := time.ParseDuration(times[0])
				s.Note("holding %s", m.ID())
				call.Suspend(m, nil, limit, again(times[1:]))
				return nil
			}
		}
		return again(strings.Split(arg, ","))(ctx, m)
	})
}

// holdReplyLayer suspends the replies to calls of the tool "hold" once for each duration in arg.
func holdReplyLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("hold-reply", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if !m.Name().Equals("hold") {
			return next(ctx, m)
		}
		times := strings.Split(arg, ",")
		var hook middleware.ReplyHook
		hook = func(_ context.Context, reply *wire.Message) error {
			if len(times) == 0 {
				noteEditError(s, reply.Set([]byte("true"), "result", "held"))
				return nil
			}
			limit, _ := time.ParseDuration(times[0])
			times = times[1:]
			call.Suspend(reply, nil, limit, func(ctx context.Context, reply *wire.Message) error {
				s.Note("resuming %s, cancelled: %v", reply.ID(), call.Cancelled())
				return hook(ctx, reply)
			})
			return nil
		}
		call.OnReply(hook)
		return next(ctx, m)
	})
}

// askLayer sends a request to a peer ("client" or "server") for each call of the tool "ask", and
// suspends the call until the peer answers. With "-nowait" after the peer it does not suspend it.
func askLayer(s *proxytest.Session, arg string) middleware.Layer {
	arg, nowait := strings.CutSuffix(arg, "-nowait")
	to := wire.Server
	if arg == "client" {
		to = wire.Client
	}
	return layer("ask", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if !m.Name().Equals("ask") {
			return next(ctx, m)
		}
		ready := make(chan struct{})
		call.Ask(to, "roots/list", nil, time.Second, func(reply *wire.Message) {
			if reply == nil {
				s.Note("no answer")
			} else {
				s.Note("answer %s", reply.Frame())
			}
			close(ready)
		})
		if nowait {
			return next(ctx, m)
		}
		call.Suspend(m, ready, time.Minute, next)
		return nil
	})
}

// rudeLayer breaks the contract: it returns an error for calls of one tool.
func rudeLayer(_ *proxytest.Session, arg string) middleware.Layer {
	return layer("rude", func(ctx context.Context, _ *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.Name().Equals(arg) {
			return context.Canceled
		}
		return next(ctx, m)
	})
}

// mustHoldLayer calls MustHold for requests with one method, and notes the replies.
func mustHoldLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("must-hold", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.MethodIs(arg) {
			call.MustHold()
			call.OnReply(func(_ context.Context, reply *wire.Message) error {
				s.Note("held reply %s %s", describe(reply), reply.ID())
				return nil
			})
		}
		return next(ctx, m)
	})
}

// brokenWanted is a hook whose Wanted panics.
type brokenWanted struct{ middleware.LateHook }

func (brokenWanted) Wanted() bool { panic("broken wanted") }

// panicLayer panics at the place that the name of the tool or method chooses: in the handler before
// or after next, in a hook, or when a suspended call or reply is resumed.
func panicLayer(*proxytest.Session, string) middleware.Layer {
	return layer("panic", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		broken := func(context.Context, *wire.Message) error { panic("broken layer") }
		switch where := m.Name().Text(); {
		case where == "before", m.MethodIs("before"):
			return broken(ctx, m)
		case where == "behind", m.MethodIs("behind"):
			return errors.Join(next(ctx, m), broken(ctx, m))
		case where == "hook":
			call.OnReply(func(context.Context, *wire.Message) error { panic("broken hook") })
		case where == "late hook":
			call.OnReplyIf(brokenWanted{})
		case where == "failing hook":
			call.OnReply(func(context.Context, *wire.Message) error { return errors.New("no luck") })
		case where == "resumed":
			call.Suspend(m, nil, time.Second, broken)
			return nil
		case where == "reply":
			call.OnReply(func(_ context.Context, reply *wire.Message) error {
				call.Suspend(reply, nil, time.Second, broken)
				return nil
			})
		case where == "suspended reply":
			call.OnReply(func(ctx context.Context, reply *wire.Message) error {
				call.Suspend(reply, nil, time.Second, func(context.Context, *wire.Message) error { return nil })
				return broken(ctx, reply)
			})
		case where == "ask", where == "ask server":
			to := wire.Client
			if where == "ask server" {
				to = wire.Server
			}
			call.Ask(to, "roots/list", nil, time.Minute, func(*wire.Message) { panic("broken done") })
		}
		return next(ctx, m)
	})
}

// twiceLayer answers a call twice, or sends it on and answers it too.
func twiceLayer(*proxytest.Session, string) middleware.Layer {
	return layer("twice", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		answer := func(text string) error { return call.Answer(ctx, wire.ResultReply(m.ID(), wire.Quote(text))) }
		switch {
		case m.MethodIs("answered-twice"):
			return errors.Join(answer("first"), answer("second"))
		case m.MethodIs("sent-and-answered"):
			return errors.Join(next(ctx, m), answer("first"), answer("second"))
		}
		return next(ctx, m)
	})
}

// laterLayer answers calls of the tool "later" with Defer after a time, or at once when the context
// of the work ends. It notes each reply that was sent.
func laterLayer(s *proxytest.Session, arg string) middleware.Layer {
	limit, _ := time.ParseDuration(arg)
	return layer("later", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		id := string(m.ID())
		call.OnSent(func(err error) { s.Note("sent %s, error %v", id, err) })
		switch name := m.Name().Text(); name {
		case "later", "stubborn", "nil", "other id", "panics":
			call.Defer(m, func(ctx context.Context, m *wire.Message) *wire.Message {
				done := ctx.Done()
				if name == "stubborn" {
					done = nil
				}
				select {
				case <-time.After(limit):
				case <-done:
					s.Note("ended %s", m.ID())
					return wire.ResultReply(m.ID(), []byte(`"ended"`))
				}
				switch name {
				case "nil":
					return nil
				case "other id":
					return wire.ResultReply([]byte("7"), []byte(`"later"`))
				case "panics":
					panic("broken work")
				}
				return wire.ResultReply(m.ID(), []byte(`"later"`))
			})
			return nil
		}
		return next(ctx, m)
	})
}
