package briefing

import (
	"context"
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
	if o.Catalog == nil {
		o.Catalog = new(middleware.Catalog)
	}
	if o.Memory == nil {
		o.Memory = new(Memory)
	}
	if o.Results == nil {
		o.Results = new(toolresult.Memory)
	}
	if o.Credential == nil {
		o.Credential = func(string) string { return "" }
	}
	if o.ClientProcess == nil {
		o.ClientProcess = func() string { return "" }
	}
	return &Conn{shared: s, o: o, warnings: warnings{log: logger(o.Log)}}
}

// Layer returns the layer. It stands behind all others except the catalogue: a call that another
// layer answers has no response to put a text into.
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
		if s := c.expects(call, view, c.window(m)); s != nil {
			c.expect(call, view, s, r)
		}
		return
	}
	switch {
	case m.MethodIs("tools/list"):
		c.open(view, "")
		if c.responds() && c.o.Results.Extends(c.shared.o.Structured) {
			call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.o.Results.Extend(call, reply) })
		}
	case m.MethodIs("initialize"), m.MethodIs("server/discover"):
		if channel := c.instructions(); channel != off {
			c.expectInstructions(call, view, channel)
		} else if m.MethodIs("initialize") {
			c.open(view, "")
		}
	default:
		// A server/discover alone may be a probe that is killed again; whatever
		// else a client asks, the session is meant.
		c.open(view, "")
	}
}

// window returns the key that separates a call from the calls of its conversation whose results
// the model no longer sees, "" if the client sends none.
func (c *Conn) window(m *wire.Message) string {
	member := c.o.Results.Client().Window
	if member == "" {
		return ""
	}
	id := m.Get("params", "_meta", member).Text()
	n, err := strconv.ParseUint(id[strings.LastIndexByte(id, ':')+1:], 10, 32)
	if err != nil || n == 0 {
		return "" // the first; a conversation that is resumed has it again
	}
	return "\nwindow " + strconv.FormatUint(n, 10)
}

// responds reports whether the responses of tools are a channel.
func (c *Conn) responds() bool { return c.shared.o.Response || !c.shared.o.Instructions }

// A channel says whether the instructions carry the briefing, and what that means for the
// session's turn.
type channel uint8

const (
	off    channel = iota
	beside         // the client may not show them: the turn stays for a response
	spends         // they spend the turn
)

func (c *Conn) instructions() channel {
	o, known := &c.shared.o, c.o.Results.Client().Instructions
	switch {
	case o.Instructions && o.Response && !known:
		return beside
	case o.Instructions, known && !o.Response:
		return spends
	}
	return off
}
