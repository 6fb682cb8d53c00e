package rewrite

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

const layerName = "rewrite"

// ConnOptions are for one client connection. Zero values work.
type ConnOptions struct {
	// Catalog holds the tools that tools/list returned; it stands behind this layer. Without it
	// the annotations of tools are unknown, and so is which of two tools the server has.
	Catalog *middleware.Catalog
	// Log receives problems with rules and lists; nil discards it.
	Log *slog.Logger
}

// A Conn is the layer of one client connection.
type Conn struct {
	*Shared
	catalog *middleware.Catalog
	log     *slog.Logger

	// For the client's direction only.
	some   glob.Names[*ruleSet] // the rules that may be for a tool
	in     expression.Inputs    // of the call at hand
	values []value              // of the call at hand

	last atomic.Pointer[sessionstate.Context] // of the client's last frame

	mu         sync.Mutex
	told       map[string]bool // what has been logged once
	listed     map[string]bool // the URIs not in normal form that the server listed
	listedSize int             // of the URIs in listed, in bytes
}

// Connect returns the layer for a new client connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Catalog == nil {
		o.Catalog = new(middleware.Catalog)
	}
	return &Conn{
		Shared: s, catalog: o.Catalog, log: o.Log,
		some: glob.Names[*ruleSet]{All: &s.all, Find: s.rulesFor},
		told: map[string]bool{}, listed: map[string]bool{},
	}
}

// Layer returns the connection as a layer.
func (c *Conn) Layer() middleware.Layer {
	l := c.needs
	l.Name, l.Wrap = layerName, c.wrap
	return l
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
			return c.fromServer(ctx, m, next)
		case m.Kind().IsReply():
			return next(ctx, m)
		}
		return c.fromClient(ctx, m, next)
	}
}

func (c *Conn) fromClient(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	view := sessionstate.ContextOf(call)
	if view != nil && view != c.last.Load() {
		c.last.Store(view)
	}
	switch method := m.Method(); method {
	case "tools/call":
		return c.call(ctx, m, view, next)
	case "tools/list":
		c.watchTools(call, view)
	case "tasks/get", "tasks/result":
		if c.renames() {
			call.OnReply(c.namesInTask(view))
		}
	default:
		if len(c.items) > 0 {
			return c.item(ctx, m, method, view, next)
		}
	}
	return next(ctx, m)
}

// fromServer handles a request or notification of the server. The call that it belongs to is not
// known, so the conditions read the client's last frame.
func (c *Conn) fromServer(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	switch {
	case c.hidesURIs() && m.MethodIs("notifications/resources/updated"):
		if rule, _ := c.uriHiddenBy(c.last.Load(), m.Get("params", "uri").View()); rule != none {
			middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: "the resource is hidden"})
			return nil // the client cannot have asked for it
		}
	case c.renames() && m.Kind() == wire.Notification:
		c.namesInNotification(m)
	}
	return next(ctx, m)
}

// fill fills the inputs of rules for a tool, by the server's name.
func (c *Conn) fill(in *expression.Inputs, view *sessionstate.Context, name string) {
	in.Context, in.Tool, in.Server = view, name, c.server
	if c.learns {
		if tool, _ := c.catalog.Tool(name); tool != nil {
			in.Annotations = tool.Annotations
		}
	}
}

// has reports whether the server is known to have a tool.
func (c *Conn) has(name string) bool {
	tool, _ := c.catalog.Tool(name)
	return tool != nil
}

// hiddenBy returns the index of the rule that hides a tool or a prompt, none if it is shown. A
// rule that cannot be evaluated hides, and err says why it cannot.
func (c *Conn) hiddenBy(in *expression.Inputs, rules []int) (rule int, err error) {
	return c.hiddenIf(in, rules, func(r *Rule) (outcome, error) { return r.judge(in) })
}

// hiddenIf is hiddenBy with a function that evaluates a rule.
func (c *Conn) hiddenIf(in *expression.Inputs, rules []int, judge func(*Rule) (outcome, error)) (rule int, err error) {
	for _, i := range rules {
		came, err := judge(&c.rules[i])
		switch came {
		case applies:
			return i, nil
		case undecided:
			c.logFailure(i, in.Tool, "it is hidden", err)
			return i, err
		}
	}
	return none, nil
}

// keepsName is what becomes of a tool for which a rule that renames cannot be evaluated.
const keepsName = "it keeps its name"

// first returns the index of the first rule that applies to the tool. A rule that cannot be
// evaluated does not apply, which is logged.
func (c *Conn) first(in *expression.Inputs, otherwise string, rules []int) int {
	for _, i := range rules {
		came, err := c.rules[i].judge(in)
		switch came {
		case applies:
			return i
		case undecided:
			c.logFailure(i, in.Tool, otherwise, err)
		}
	}
	return none
}

// logFailure logs a rule that could not be evaluated, once for each rule and reason, because a list
// may have many tools and be asked for often.
func (c *Conn) logFailure(i int, name, otherwise string, err error) {
	if c.once(c.key(i) + err.Error()) {
		c.log.Warn("a rule could not be applied", "rule", c.key(i), "name", middleware.Clip(name), "so", otherwise, "why", err)
	}
}

// maxTold bounds how many log texts are remembered.
const maxTold = 1000

// once reports whether a text is logged for the first time.
func (c *Conn) once(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[text] {
		return false
	}
	if len(c.told) >= maxTold {
		clear(c.told)
	}
	c.told[text] = true
	return true
}
