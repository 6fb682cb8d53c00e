package proxy

import (
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Rules are the part of [Options] that can be replaced while a session runs.
type Rules struct {
	Layers []middleware.Layer
	DryRun bool
}

// A Control acts on a session while it runs. The zero value is ready; it is for
// one session. Its methods do nothing before [Run] has begun and when the session
// is over, and may be called from any goroutine but a layer's.
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

// Replace has the frames to come handled by r. A call in flight ends with the
// hooks it has: no call sees a half of each. It waits for the frames being handled
// and so for a server that does not read. It reports whether there was a session.
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

// Restart ends the upstream and has it started again. It reports false if the upstream
// would not be: see [Options.Restart].
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
