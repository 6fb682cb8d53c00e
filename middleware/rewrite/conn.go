package rewrite

import (
	"cmp"
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

// ConnOptions are the options of one client connection. Zero values work.
type ConnOptions struct {
	// Catalog holds the tools that tools/list returned; its layer is inside this one. Without
	// it, the annotations of tools are unknown, and so is which of two tools the server has.
	Catalog *middleware.Catalog
	// Listed is kept across configuration reloads; nil means an empty one.
	Listed *ListedURIs
	// Log receives problems with rules and lists; nil discards it.
	Log *slog.Logger
}

// A Conn is the layer of one client connection.
type Conn struct {
	*Shared
	catalog *middleware.Catalog
	listed  *ListedURIs
	log     *slog.Logger

	// For the client's direction only.
	matching glob.Names[*ruleSet] // the rules that may apply to a tool, whose patterns are matched once for each name
	in       expression.Inputs    // of the current call
	values   []value              // of the current call

	// Written by the client's direction, read by the server's, whose notifications belong to no call.
	last atomic.Pointer[sessionstate.Context] // of the client's last frame

	// Both directions log: hooks of lists run in the server's.
	mu     sync.Mutex
	logged map[string]bool // the messages that once has returned true for
}

// Connect returns the layer for a new client connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Catalog, o.Listed = cmp.Or(o.Catalog, new(middleware.Catalog)), cmp.Or(o.Listed, new(ListedURIs))
	return &Conn{
		Shared: s, catalog: o.Catalog, listed: o.Listed, log: o.Log,
		matching: glob.Names[*ruleSet]{All: &s.all, Find: s.rulesFor},
		logged:   map[string]bool{},
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
	// Most frames have the same view as the one before, and nothing is written. A frame without a view does not take away
	// what is known.
	if view != nil && view != c.last.Load() {
		c.last.Store(view)
	}
	switch method := m.Method(); method {
	case "tools/call":
		return c.call(ctx, m, view, next, false)
	case "tools/list":
		if c.editsList {
			c.watch(call, listEdit{view: view, list: "tools", binds: c.binds(), private: c.privateTools, hides: (*listEdit).tool})
		}
	// A task may have been made in an earlier call, under any name, so all renamed tools count.
	case "tasks/get", "tasks/result":
		if c.renames() {
			call.OnReply(c.namesInTask(view))
		}
	default:
		// Rules with conditions on annotations are for tools alone: see Rule.hidesItems.
		if len(c.items) > 0 {
			return c.item(ctx, m, method, view, next)
		}
	}
	return next(ctx, m)
}

// fromServer handles a request or notification of the server. The call that it belongs to is
// unknown, so conditions are evaluated for the client's last frame.
func (c *Conn) fromServer(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	switch {
	case c.hidesURIs() && m.MethodIs("notifications/resources/updated"):
		if rule, _ := c.uriHiddenBy(c.last.Load(), m.Get("params", "uri").View()); rule != none {
			middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: "the resource is hidden"})
			return nil // the client cannot have subscribed to it, so nobody waits for it
		}
	case c.renames() && m.Kind() == wire.Notification:
		c.namesInNotification(m)
	}
	return next(ctx, m)
}

// setInputs sets the inputs of rules for a tool, by the server's name.
func (c *Conn) setInputs(in *expression.Inputs, view *sessionstate.Context, name string) {
	in.Context, in.Tool, in.Server = view, name, c.server
	// The annotations are looked up only if a rule reads them, because that takes the lock of the catalogue.
	if c.readAnnotations {
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

// hiddenBy returns the index of the rule that hides a tool or a prompt, or none. A rule that
// cannot be evaluated hides; err is then the reason.
func (c *Conn) hiddenBy(in *expression.Inputs, rules []int) (rule int, err error) {
	return c.hiddenIf(in, rules, func(r *Rule) (outcome, error) { return r.judge(in) })
}

// hiddenIf is like hiddenBy, with a function that evaluates a rule.
func (c *Conn) hiddenIf(in *expression.Inputs, rules []int, judge func(*Rule) (outcome, error)) (rule int, err error) {
	for _, i := range rules {
		result, err := judge(&c.rules[i])
		switch result {
		case applies:
			return i, nil
		case undecided:
			c.logFailure(i, in.Tool, "it is hidden", err)
			return i, err
		}
	}
	return none, nil
}

// first returns the index of the first rule that applies to the tool, or none. A rule that
// cannot be evaluated does not apply; this is logged with its consequence.
func (c *Conn) first(in *expression.Inputs, consequence string, rules []int) int {
	for _, i := range rules {
		result, err := c.rules[i].judge(in)
		switch result {
		case applies:
			return i
		case undecided:
			c.logFailure(i, in.Tool, consequence, err)
		}
	}
	return none
}

// logFailure logs a rule that could not be evaluated, once for each rule and reason, because a
// client may ask often for a list, and a list may have many tools.
func (c *Conn) logFailure(i int, name, consequence string, err error) {
	if c.once(c.key(i) + err.Error()) {
		c.log.Warn("a rule could not be applied", "rule", c.key(i), "name", middleware.Clip(name), "so", consequence, "why", err)
	}
}

// maxLogged bounds the number of messages that are remembered.
const maxLogged = 1000

// once reports whether it is called with a message for the first time.
func (c *Conn) once(message string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logged[message] {
		return false
	}
	if len(c.logged) >= maxLogged {
		clear(c.logged) // rather log a message twice than not at all
	}
	c.logged[message] = true
	return true
}
