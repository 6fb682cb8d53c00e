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

// named are the layers that the scripts in testdata use.
var named = map[string]func(s *proxytest.Session, arg string) middleware.Layer{
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

// enforces is a layer that has the relay refuse what parsers read differently.
var enforces = middleware.Layer{Name: "enforces", Enforces: true}

// layer makes a layer of a function that gets each message with its call.
func layer(name string, h func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error) middleware.Layer {
	return middleware.Layer{Name: name, Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			return h(ctx, middleware.CallFrom(ctx), m, next)
		}
	}}
}

// seeLayer notes what passes it.
func seeLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("see", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		s.Note("%s %s %s %s", arg, m.From, what(m), m.ID())
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			s.Note("%s reply %s %s", arg, what(reply), reply.ID())
			return nil
		})
		return next(ctx, m)
	})
}

func what(m *wire.Message) string {
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
			note(s, m.Set([]byte("true"), "params", "arguments", arg))
		}
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			if reply.Kind() == wire.Result {
				note(s, reply.Set([]byte("true"), "result", arg))
			}
			return nil
		})
		return next(ctx, m)
	})
}

func note(s *proxytest.Session, err error) {
	if err != nil {
		s.Note("edit: %v", err)
	}
}

// answerLayer answers the calls of one tool, or any request with that method.
func answerLayer(_ *proxytest.Session, arg string) middleware.Layer {
	return layer("answer", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.From == wire.Client && m.Kind() == wire.Request && (m.Name().Equals(arg) || m.MethodIs(arg)) {
			return call.Answer(ctx, wire.ResultReply(m.ID(), []byte(`"answered"`)))
		}
		return next(ctx, m)
	})
}

// dropLayer drops what has that method, requests too, which it must not.
func dropLayer(_ *proxytest.Session, arg string) middleware.Layer {
	return layer("drop", func(ctx context.Context, _ *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.MethodIs(arg) {
			return nil
		}
		return next(ctx, m)
	})
}

// holdLayer holds calls of the tool "hold" back for a time, as often as the
// argument, a duration, has commas between its parts.
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

// holdReplyLayer holds the replies to calls of the tool "hold" back for a time.
func holdReplyLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("hold-reply", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if !m.Name().Equals("hold") {
			return next(ctx, m)
		}
		times := strings.Split(arg, ",")
		var hook middleware.ReplyHook
		hook = func(_ context.Context, reply *wire.Message) error {
			if len(times) == 0 {
				note(s, reply.Set([]byte("true"), "result", "held"))
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

// askLayer asks a peer ("client" or "server") on behalf of calls of the tool
// "ask", and holds the call back until the answer is there. With "-nowait"
// behind the peer it does not hold it back.
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

// rudeLayer breaks the contract: it returns an error for a tool of that name.
func rudeLayer(_ *proxytest.Session, arg string) middleware.Layer {
	return layer("rude", func(ctx context.Context, _ *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.Name().Equals(arg) {
			return context.Canceled
		}
		return next(ctx, m)
	})
}

// mustHoldLayer has the replies to requests of one method held, and notes them.
func mustHoldLayer(s *proxytest.Session, arg string) middleware.Layer {
	return layer("must-hold", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.MethodIs(arg) {
			call.MustHold()
			call.OnReply(func(_ context.Context, reply *wire.Message) error {
				s.Note("held reply %s %s", what(reply), reply.ID())
				return nil
			})
		}
		return next(ctx, m)
	})
}

// panicLayer panics where the name of the tool or method says: in the handler
// before or behind next, in a hook, or when a call or reply that was held back goes
// on.
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
		case where == "ask":
			call.Ask(wire.Client, "roots/list", nil, time.Minute, func(*wire.Message) { panic("broken done") })
		}
		return next(ctx, m)
	})
}

// twiceLayer answers a call that it has let go on as well, or answers it twice.
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

// laterLayer answers the calls of the tool "later" after a time, or as soon as
// nobody waits any more. It notes when a reply was sent, and to what.
func laterLayer(s *proxytest.Session, arg string) middleware.Layer {
	limit, _ := time.ParseDuration(arg)
	return layer("later", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		id := string(m.ID())
		call.OnSent(func(err error) { s.Note("sent %s, error %v", id, err) })
		switch name := m.Name().Text(); name {
		case "later", "stubborn", "nil", "panics":
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
