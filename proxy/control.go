package proxy

import (
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Rules are the [Options] that can be replaced while a session runs.
type Rules struct {
	Layers []middleware.Layer
	DryRun bool
}

// A Control acts on a running session. The zero value is ready; it serves one session. Its
// methods do nothing before [Run] begins and after the session has ended. Any goroutine may call
// them, but no layer.
type Control struct {
	mu sync.Mutex
	s  *session
}

func (c *Control) attach(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s = s
}

func (c *Control) session() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}

// Replace makes r the rules for the frames to come. A call in flight keeps its hooks, so no call
// sees half of each. Replace waits until the current frames are handled, and so for a server
// that does not read. It reports whether there was a session.
func (c *Control) Replace(r Rules) bool {
	s := c.session()
	if s == nil {
		return false
	}
	s.c.mu.Lock()
	s.c.setRules(s, r)
	s.c.mu.Unlock()
	s.v.mu.Lock()
	s.v.setRules(s, r)
	s.v.mu.Unlock()
	return true
}

// Restart ends the upstream, which is then started again. It reports false if the upstream would
// not be started again: see [Options.Restart].
func (c *Control) Restart() bool {
	s := c.session()
	return s != nil && s.mayRevive() && s.supervisor.Restart(s.link.Load())
}

// Notify sends the client a notification of attache's own. It never blocks, and
// passes no layer.
func (c *Control) Notify(m *wire.Message) {
	if s := c.session(); s != nil && s.work.Begin() {
		defer s.work.End()
		s.queue(m, nil)
	}
}
