package briefing

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A Conn is the layer of one client connection.
type Conn struct {
	shared   *Shared
	o        ConnOptions
	warnings warnings
}

// Connect returns the layer of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	o.Catalog = cmp.Or(o.Catalog, new(middleware.Catalog))
	o.Memory = cmp.Or(o.Memory, new(Memory))
	o.Results = cmp.Or(o.Results, new(toolresult.Memory))
	if o.Credential == nil {
		o.Credential = func(string) string { return "" }
	}
	if o.ClientProcess == nil {
		o.ClientProcess = func() string { return "" }
	}
	return &Conn{shared: s, o: o, warnings: warnings{log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}}
}

// Layer returns the layer. It must run behind all others except the catalog: a call that another
// layer answers has no response for the text.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: "briefing", Wrap: c.wrap}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client && m.Kind() == wire.Request {
			c.request(ctx, m)
		}
		return next(ctx, m)
	}
}

func (c *Conn) request(ctx context.Context, m *wire.Message) {
	call := middleware.CallFrom(ctx)
	view := sessionstate.ContextOf(call)
	if view == nil || view.Session.Empty() || m.MethodIs("ping") {
		return
	}
	c.o.Results.LearnClient(m)
	if r, ok := c.o.Results.Expect(m); ok {
		if s := c.due(call, view, c.window(m)); s != nil {
			call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.respond(call, view, s, r, reply) })
		}
		return
	}
	switch {
	case m.MethodIs("tools/list"):
		c.open(view, "")
		if c.usesResponses() && c.o.Results.Extends(c.shared.o.Structured) {
			call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.o.Results.Extend(call, reply) })
		}
	case m.MethodIs("initialize"), m.MethodIs("server/discover"):
		if use := c.instructions(view); use != unused {
			c.expectInstructions(call, view, use)
		} else if m.MethodIs("initialize") {
			c.open(view, "")
		}
	default:
		// A client that sends only server/discover may be probing the server. Any other
		// request begins a session.
		c.open(view, "")
	}
}

// window returns a key that differs from those of earlier calls of the conversation if the model
// no longer sees their results; "" if the client sends none.
func (c *Conn) window(m *wire.Message) string {
	member := c.o.Results.Client().Window
	if member == "" {
		return ""
	}
	id := m.Get("params", "_meta", member).Text()
	n, err := strconv.ParseUint(id[strings.LastIndexByte(id, ':')+1:], 10, 32)
	if err != nil || n == 0 {
		return "" // the first window, also of a resumed conversation
	}
	return "\nwindow " + strconv.FormatUint(n, 10)
}

// usesResponses reports whether the responses of tools are a channel.
func (c *Conn) usesResponses() bool { return c.shared.o.Response || !c.shared.o.Instructions }

// An instructionsUse states whether the instructions carry the briefing, and whether that spends
// the session's turn.
type instructionsUse uint8

const (
	unused     instructionsUse = iota
	keepsTurn                  // the turn is kept for a response, because the client may not show the instructions
	spendsTurn                 // the instructions spend the turn
)

func (c *Conn) instructions(view *sessionstate.Context) instructionsUse {
	o, client := &c.shared.o, c.o.Results.Client()
	shown := client.Instructions
	late := client.Late || client.Older && view.Session.From != client.Variable
	switch {
	case o.Instructions && o.Response && !shown, late && o.Instructions == o.Response:
		return keepsTurn
	case o.Instructions, shown && !o.Response:
		return spendsTurn
	}
	return unused
}
