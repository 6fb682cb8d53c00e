package briefing

import (
	"context"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
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
	if o.Credential == nil {
		o.Credential = func(string) string { return "" }
	}
	if o.ClientProcess == nil {
		o.ClientProcess = func() string { return "" }
	}
	return &Conn{shared: s, o: o, warnings: warnings{log: logger(o.Log)}}
}

// Layer returns the layer. It stands within all others but the catalogue: a call that
// another layer answers itself has no response to carry anything.
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
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	if view == nil || view.Session.Empty() || m.MethodIs("ping") {
		return
	}
	c.o.Memory.learnClient(m)
	switch {
	case m.MethodIs("tools/call"):
		if s := c.expects(call, view); s != nil {
			c.expect(call, view, s, response{tool: strings.Clone(m.Name().Text()), at: []string{"result"}, asTask: m.Get("params", "task").IsObject()})
		}
	case m.MethodIs("tasks/result"), m.MethodIs("tasks/get"):
		if s := c.expects(call, view); s != nil {
			r := response{tool: c.o.Memory.tool(m), at: []string{"result"}}
			if m.MethodIs("tasks/get") {
				r.at = []string{"result", "result"}
			}
			c.expect(call, view, s, r)
		}
	case m.MethodIs("tools/list"):
		c.open(view)
		if c.extends() {
			call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.extend(call, reply) })
		}
	case m.MethodIs("initialize"), m.MethodIs("server/discover"):
		if channel := c.instructions(); channel != off {
			c.expectInstructions(call, view, channel)
		} else if m.MethodIs("initialize") {
			c.open(view)
		}
	default:
		// A server/discover alone may be a probe that is killed again; whatever
		// else a client asks, the session is meant.
		c.open(view)
	}
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
	o, known := &c.shared.o, clientOf(c.o.Memory.clientName()).Instructions
	switch {
	case o.Instructions && o.Response && !known:
		return beside
	case o.Instructions, known && !o.Response:
		return spends
	}
	return off
}

// Memory holds what a connection has learnt and a configuration reload does not change.
// The zero value is empty.
type Memory struct {
	missed missed

	mu      sync.Mutex
	client  string
	members map[string]bool   // tools whose structuredContent may have [memberName]
	tasks   map[string]string // the tool of each task
}

// Bounds of a Memory.
const (
	maxClientName = 128
	maxMembers    = 10_000
	maxTasks      = 1_000
	maxTaskName   = 256 // of an id, and of a tool
)

// learnClient reads the client's name: from initialize, or from a request of the modern
// era, of which each has it.
func (k *Memory) learnClient(m *wire.Message) {
	var name wire.Value
	if m.MethodIs("initialize") {
		name = m.Get("params", "clientInfo", "name")
	} else if k.clientName() == "" {
		name = m.Meta().Get("io.modelcontextprotocol/clientInfo", "name")
	}
	if name.IsString() && len(name.Raw) <= maxClientName {
		k.mu.Lock()
		k.client = strings.Clone(name.Text())
		k.mu.Unlock()
	}
}

func (k *Memory) clientName() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.client
}

// hasMember reports whether the client was shown a list in which tool may have
// [memberName].
func (k *Memory) hasMember(tool string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.members[tool]
}

// learnTask keeps which tool a task runs.
func (k *Memory) learnTask(id, tool string) {
	if id == "" || len(id) > maxTaskName || len(tool) > maxTaskName {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tasks == nil || len(k.tasks) >= maxTasks {
		k.tasks = map[string]string{}
	}
	k.tasks[strings.Clone(id)] = tool
}

// tool returns the tool of the task that m asks for, "" if it is not known.
func (k *Memory) tool(m *wire.Message) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tasks[m.Get("params", "taskId").Text()]
}
