package dryrun_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TestScripts plays testdata/*.txt through a dry run of layers that do everything a layer
// may: "layers dry=NAME,NAME...". What the layers do and log appears as notes.
func TestScripts(t *testing.T) {
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"outer": func(s *proxytest.Session, _ string) middleware.Layer { return outer(s) },
		"dry": func(s *proxytest.Session, arg string) middleware.Layer {
			o := dryrun.Options{Show: func(_ []string, raw []byte) string { return string(raw) }, Log: slog.New(notes{s, nil})}
			for name := range strings.SplitSeq(arg, ",") {
				o.Layers = append(o.Layers, middleware.Layer{Name: name, Wrap: inner(t, s, name)})
			}
			return dryrun.New(o)
		},
	}}.Play(t, "testdata/*.txt")
}

type key struct{}

// outer is a layer outside the dry run, as audit and capture are.
func outer(s *proxytest.Session) middleware.Layer {
	return middleware.Layer{Name: "outer", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			call := middleware.CallFrom(ctx)
			call.SetValue(key{}, "from outside")
			call.Listen(false, func(_ *middleware.Call, n middleware.Note) { s.Note("outer hears %s, dry run %v", n.Act, n.DryRun) })
			err := next(ctx, m)
			if v := call.Value(key{}); v != "from outside" {
				s.Note("a layer inside attached %v", v)
			}
			return err
		}
	}}
}

// inner returns a layer that applies the act of its name to frames with that method or tool.
func inner(t *testing.T, s *proxytest.Session, name string) middleware.Middleware {
	act, ok := acts[name]
	if !ok {
		t.Fatalf("there is no layer %q", name)
	}
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if !m.MethodIs(name) && !m.Name().Equals(name) {
				return next(ctx, m)
			}
			return act(ctx, s, middleware.CallFrom(ctx), m, next)
		}
	}
}

type act func(ctx context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error

var acts = map[string]act{
	"edit": func(ctx context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		s.Note("value %v", call.Value(key{}))
		call.SetValue(key{}, "from inside")
		note := middleware.Note{Layer: "edit", Rule: "rules[0]", Act: middleware.Edited, Path: []string{"params", "arguments", "path"},
			Before: m.Get("params", "arguments", "path").Raw, After: []byte(`"/w"`), Source: "--workspace"}
		if err := m.Set(note.After, note.Path...); err != nil {
			return err
		}
		call.Note(note)
		return next(ctx, m)
	},
	"silent": func(ctx context.Context, _ *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.OnReply(func(_ context.Context, reply *wire.Message) error { return reply.Set([]byte("1"), "result", "added") })
		return errors.Join(m.Set([]byte("1"), "params", "added"), next(ctx, m))
	},
	"refuse": func(ctx context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, _ middleware.Handler) error {
		call.OnReply(func(_ context.Context, reply *wire.Message) error { s.Note("hook: %s", reply.Frame()); return nil })
		call.Note(middleware.Note{Layer: "refuse", Rule: "rules[1]", Act: middleware.Refused, Why: "it denies the call"})
		return call.Answer(ctx, wire.ToolErrorReply(m.ID(), "Permission denied", false))
	},
	"defer": func(_ context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, _ middleware.Handler) error {
		call.Defer(m, func(context.Context, *wire.Message) *wire.Message { s.Note("work was done"); return nil })
		return nil
	},
	"panic": func(context.Context, *proxytest.Session, *middleware.Call, *wire.Message, middleware.Handler) error {
		panic("broken layer")
	},
	"drop": func(context.Context, *proxytest.Session, *middleware.Call, *wire.Message, middleware.Handler) error {
		return nil
	},
	"fail": func(_ context.Context, _ *proxytest.Session, call *middleware.Call, _ *wire.Message, _ middleware.Handler) error {
		call.Note(middleware.Note{Layer: "fail", Act: middleware.Failed, Why: "out of luck"})
		return errors.New("broken")
	},
	"wait": func(ctx context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.Suspend(m, nil, time.Second, func(ctx context.Context, m *wire.Message) error {
			call.Suspend(m, nil, time.Second, func(ctx context.Context, m *wire.Message) error {
				return errors.Join(m.Set([]byte("1"), "params", "added"), next(ctx, m))
			})
			return nil
		})
		return nil
	},
	"wait-reply": func(ctx context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			s.Note("outermost, cancelled %v", call.Cancelled())
			return nil
		})
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			call.Suspend(reply, nil, time.Second, func(_ context.Context, reply *wire.Message) error {
				call.Suspend(reply, nil, time.Second, func(_ context.Context, reply *wire.Message) error {
					return reply.Set([]byte("1"), "result", "added")
				})
				return nil
			})
			return nil
		})
		return next(ctx, m)
	},
	"ask": func(ctx context.Context, s *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		ready := make(chan struct{})
		call.Ask(wire.Server, "tools/list", nil, time.Second, func(reply *wire.Message) {
			s.Note("learnt %s", reply.Get("result").Raw)
			close(ready)
		})
		call.Suspend(m, ready, time.Minute, next)
		return nil
	},
	"withhold": func(ctx context.Context, _ *proxytest.Session, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.MustHold()
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			call.Note(middleware.Note{Layer: "withhold", Act: middleware.Refused, Why: "it cannot be read"})
			*reply = *wire.ErrorReply(slices.Clone(reply.ID()), wire.CodeInternalError, "withheld")
			return nil
		})
		return next(ctx, m)
	},
}

// notes is a slog.Handler that makes a note of each record, with its attributes.
type notes struct {
	s     *proxytest.Session
	attrs []slog.Attr
}

func (n notes) Enabled(context.Context, slog.Level) bool { return true }

func (n notes) Handle(ctx context.Context, r slog.Record) error {
	if middleware.CallFrom(ctx) == nil {
		n.s.Note("a log line without a call")
	}
	text := r.Level.String() + " " + r.Message
	add := func(a slog.Attr) bool { text += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true }
	for _, a := range n.attrs {
		add(a)
	}
	r.Attrs(add)
	n.s.Note("%s", text)
	return nil
}

func (n notes) WithAttrs(attrs []slog.Attr) slog.Handler {
	return notes{n.s, append(n.attrs, attrs...)}
}
func (n notes) WithGroup(string) slog.Handler { return n }

// A layer's own log lines are marked, also with attributes and groups.
func TestMark(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	dryrun.Mark(log).With("a", 1).WithGroup("g").Info("a call was refused", "b", 2)
	if got := b.String(); got != "level=INFO msg=\"dry run: a call was refused\" a=1 g.b=2\n" {
		t.Error(got)
	}
}
