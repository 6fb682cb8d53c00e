package middleware_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// trace returns a layer that writes its name to b before and after next.
func trace(b *strings.Builder, name string) middleware.Layer {
	return middleware.Layer{Name: name, Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			b.WriteString(name)
			defer b.WriteString(name)
			return next(ctx, m)
		}
	}}
}

func TestChain(t *testing.T) {
	var b strings.Builder
	layers := []middleware.Layer{trace(&b, "1"), trace(&b, "2"), trace(&b, "3")}
	last := func(context.Context, *wire.Message) error { b.WriteString("|"); return nil }
	run := func(layers []middleware.Layer) string {
		b.Reset()
		testkit.Check(t, middleware.Chain(last, layers...)(t.Context(), &wire.Message{}))
		return b.String()
	}
	if got := run(layers); got != "123|321" {
		t.Errorf("the chain ran as %s", got)
	}
	if got := run(middleware.Reversed(layers)); got != "321|123" {
		t.Errorf("the reversed chain ran as %s", got)
	}
	if got := run(nil); got != "|" {
		t.Errorf("the empty chain ran as %s", got)
	}
	if layers[0].Name != "1" {
		t.Error("Reversed changed its argument")
	}
}

// relay records the methods that are called.
type relay struct{ did []string }

func (r *relay) Answer(context.Context, *wire.Message) error {
	r.did = append(r.did, "answer")
	return nil
}
func (r *relay) Defer(*wire.Message, relayed.Work) { r.did = append(r.did, "defer") }
func (r *relay) Cancelled() bool                   { r.did = append(r.did, "cancelled"); return true }
func (r *relay) Ask(wire.Peer, string, []byte, time.Duration, func(*wire.Message)) {
	r.did = append(r.did, "ask")
}
func (r *relay) Suspend(*wire.Message, <-chan struct{}, time.Duration, relayed.Handler) {
	r.did = append(r.did, "suspend")
}

func TestCall(t *testing.T) {
	type key struct{}
	var r relay
	var of relayed.Call
	c := (*middleware.Call)(&of)
	hook := func(context.Context, *wire.Message) error { return nil }

	of.Reset(&r, true)
	c.OnReply(hook)
	c.OnReply(hook)
	c.SetValue(key{}, 1)
	c.SetValue(key{}, 2)
	if err := c.Answer(t.Context(), nil); err != nil {
		t.Error(err)
	}
	c.Ask(wire.Server, "", nil, 0, nil)
	c.Suspend(nil, nil, 0, nil)
	if !c.Cancelled() || of.Relay() != &r {
		t.Error("the call does not use the relay passed to Reset")
	}
	if got := strings.Join(r.did, " "); got != "answer ask suspend cancelled" {
		t.Errorf("the relay did %s", got)
	}
	if of.HoldsReply() {
		t.Error("HoldsReply is true before MustHold")
	}
	if c.MustHold(); !of.HoldsReply() {
		t.Error("HoldsReply is false after MustHold")
	}
	if len(of.Hooks()) != 2 || c.Value(key{}) != 2 || c.Value("other") != nil {
		t.Errorf("%d hooks, value %v", len(of.Hooks()), c.Value(key{}))
	}

	// Reused for a frame that is not a request: it has no old state and accepts no hooks.
	of.Reset(&r, false)
	c.OnReply(hook)
	c.MustHold()
	if err := c.Answer(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if of.HoldsReply() {
		t.Error("HoldsReply is true for a frame that has no reply")
	}
	if len(of.Hooks()) != 0 || c.Value(key{}) != nil || len(r.did) != 4 {
		t.Errorf("%d hooks, value %v, the relay did %v", len(of.Hooks()), c.Value(key{}), r.did)
	}
}

// Hooks returns only the hooks that want the reply, and asks each of them once.
func TestOnReplyIf(t *testing.T) {
	var r relay
	var of relayed.Call
	c := (*middleware.Call)(&of)
	var asked, ran strings.Builder
	of.Reset(&r, true)
	for _, name := range []string{"a", "b?", "c?", "d", "e?"} {
		h := func(context.Context, *wire.Message) error { ran.WriteString(name); return nil }
		if !strings.HasSuffix(name, "?") {
			c.OnReply(h)
			continue
		}
		c.OnReplyIf(lateHook{func() bool { asked.WriteString(name); return name == "c?" }, h})
	}
	if !of.Hooked() || asked.Len() > 0 {
		t.Error("the hooks were asked before the call was over")
	}
	for range 2 {
		for _, h := range of.Hooks() {
			_ = h(t.Context(), nil)
		}
	}
	if ran.String() != "ac?dac?d" || asked.String() != "e?c?b?" {
		t.Errorf("asked %s, ran %s", &asked, &ran)
	}
	of.Reset(&r, true)
	c.OnReplyIf(lateHook{func() bool { return false }, nil})
	if len(of.Hooks()) != 0 {
		t.Error("Hooks returned a hook that does not want the reply")
	}
}

type lateHook struct {
	wanted func() bool
	reply  middleware.ReplyHook
}

func (h lateHook) Wanted() bool { return h.wanted() }

func (h lateHook) Reply(ctx context.Context, reply *wire.Message) error { return h.reply(ctx, reply) }

// CallFrom finds the call in a wrapped context, and the context has the values and the end of
// the session's context.
func TestCallFrom(t *testing.T) {
	type key struct{}
	var c relayed.Call
	base, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "session"))
	ctx := context.Context(&relayed.Context{Context: base, Call: &c})
	for range 2 {
		if middleware.CallFrom(ctx) != (*middleware.Call)(&c) || ctx.Value(key{}) != "session" {
			t.Error("the call or the session's value is lost")
		}
		ctx = context.WithValue(ctx, new(int), 1)
	}
	if cancel(); ctx.Err() == nil {
		t.Error("the context does not end with the session")
	}
	if middleware.CallFrom(t.Context()) != nil {
		t.Error("a context without a call has one")
	}
}

func TestNotes(t *testing.T) {
	var of relayed.Call
	c := (*middleware.Call)(&of)
	of.Reset(nil, true)
	c.Note(middleware.Note{Act: middleware.Edited}) // no listeners yet
	var heard []middleware.Act
	c.Listen(false, func(_ *middleware.Call, n middleware.Note) { heard = append(heard, n.Act) })
	if !c.Noted() || c.Explained() {
		t.Errorf("noted %v, explained %v", c.Noted(), c.Explained())
	}
	c.Listen(true, func(_ *middleware.Call, n middleware.Note) { heard = append(heard, n.Act+"!") })
	c.Note(middleware.Note{Act: middleware.Kept})
	if got := fmt.Sprint(heard); got != "[kept kept!]" || !c.Explained() {
		t.Errorf("heard %s, explained %v", got, c.Explained())
	}
	of.Reset(nil, true)
	c.Note(middleware.Note{Act: middleware.Refused})
	if c.Noted() || c.Explained() || len(heard) != 2 {
		t.Error("a listener outlived its call")
	}
}

// A shadow has the values of its call and does not change it.
func TestShadow(t *testing.T) {
	type key struct{}
	var r, shadowRelay relay
	var c relayed.Call
	c.Reset(&r, true)
	c.SetValue(key{}, 1)
	c.Listen(true, func(*middleware.Call, middleware.Note) {
		t.Error("a note about the shadow reached a listener of its call")
	})

	s := c.Shadow(&shadowRelay)
	shadow := (*middleware.Call)(s)
	if s.Value(key{}) != 1 || shadow.Noted() || len(s.Hooks()) != 0 {
		t.Errorf("value %v, noted %v, %d hooks", s.Value(key{}), shadow.Noted(), len(s.Hooks()))
	}
	s.SetValue(key{}, 2)
	s.OnReply(func(context.Context, *wire.Message) error { return nil })
	shadow.Note(middleware.Note{Act: middleware.Edited})
	if err := shadow.Answer(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if c.Value(key{}) != 1 || len(c.Hooks()) != 0 || len(r.did) != 0 || len(shadowRelay.did) != 1 {
		t.Errorf("value %v, %d hooks, the relay did %v, the shadow's %v", c.Value(key{}), len(c.Hooks()), r.did, shadowRelay.did)
	}
}

// Needs unites the requirements of all layers, with each name once.
func TestNeeds(t *testing.T) {
	got := middleware.Needs(
		middleware.Layer{Name: "a", ArgumentNames: [][]string{{"path", "x"}}, Guarded: []string{"key"}},
		middleware.Layer{Name: "b", Enforces: true, ArgumentNames: [][]string{{"x", "y"}, {"z"}}},
		middleware.Layer{Name: "c", Guarded: []string{"token", "key"}},
	)
	want := middleware.Layer{Enforces: true, ArgumentNames: [][]string{{"path", "x", "y"}, {"z"}}, Guarded: []string{"key", "token"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the layers need %+v, want %+v", got, want)
	}
	if got := middleware.Needs(); !reflect.DeepEqual(got, middleware.Layer{}) {
		t.Errorf("no layers need %+v", got)
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("x", 200):       strings.Repeat("x", 200),
		strings.Repeat("x", 201):       strings.Repeat("x", 200) + "…",
		strings.Repeat("x", 199) + "ü": strings.Repeat("x", 199) + "…", // characters are not split
	} {
		if got := middleware.Clip(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
