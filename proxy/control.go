package proxy

import (
	"cmp"
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
// methods do nothing after the session has ended and, but for Replace, before [Run] begins. Any
// goroutine may call them, but no layer.
type Control struct {
	mu    sync.Mutex
	s     *session
	rules *Rules // that came before the session, until it begins
}

// attach begins the session s, under rules unless others have replaced them.
func (c *Control) attach(s *session, rules Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s = s
	s.setRules(*cmp.Or(c.rules, &rules))
	c.rules = nil // so that rules replaced later are not kept in memory
}

func (c *Control) session() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}

// Replace makes r the rules for later frames. Before the session begins, r replaces the rules in the
// [Options]. A call in flight keeps its hooks, so no call sees half of each. Replace waits until the
// current frames are handled, and so for a peer that does not read, but not after the session's end.
func (c *Control) Replace(r Rules) {
	c.mu.Lock()
	s := c.s
	if s == nil {
		c.rules = &r
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	set := make(chan struct{})
	// setRules waits for the mutex of each direction, which a write may hold for as long as a peer
	// likes.
	go func() { defer close(set); s.setRules(r) }()
	select {
	case <-set:
	case <-s.ending: // a frame may be stuck in a write to a client that does not read
		// The goroutine ends with that write. The rules concern nobody any more.
	}
}

// Restart ends the upstream, which is then started again. It reports false if the upstream would
// not be started again: see [Options.Restart].
func (c *Control) Restart() bool {
	s := c.session()
	return s != nil && s.supervisor != nil && s.supervisor.Restart(s.link.Load())
}

// Notify sends the client a notification. It never blocks, and
// passes no layer.
func (c *Control) Notify(m *wire.Message) {
	if s := c.session(); s != nil && s.work.Begin() {
		defer s.work.End()
		s.queue(m, nil)
	}
}
