package assembly

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// setCurrent makes s the Shared for new connections. It returns the existing connections. Both are one step under mu,
// so that each connection gets s here or in Connect, and none is missed.
func (p *process) setCurrent(s *Shared) []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = s
	p.who.Store(s.authenticator)
	return slices.Collect(maps.Keys(p.conns))
}

// applyTime is how long Reload waits for connections. While a server or client does not read, its
// connection cannot change, but others must still get this configuration and the next ones.
const applyTime = time.Second

// Reload compiles settings and applies them to every connection. After an error nothing
// has changed. Call it on the Shared that was compiled last, from one goroutine at a time. Calls in flight keep the
// hooks that the old layers have registered, so no call is judged by one configuration and edited by the other.
func (s *Shared) Reload(settings *config.Settings) (*Shared, error) {
	next, err := s.compile(settings, s)
	if err != nil {
		s.redactLog() // compile may have replaced the secrets
		return nil, err
	}
	next.number = s.number + 1
	// New connections get next from now on. Each existing connection gets a goroutine, so that a slow connection does
	// not stop the others. The goroutine ends when the relay has taken the layers or the session has ended: see
	// Conn.use.
	var wait sync.WaitGroup
	for _, c := range s.setCurrent(next) {
		wait.Go(func() { c.use(next) })
	}
	applied := make(chan struct{})
	go func() { wait.Wait(); close(applied) }()
	select {
	case <-applied:
	case <-time.After(applyTime):
		s.Log.Warn("the new configuration does not apply to all sessions yet: it waits for a server or client that does not read its input")
	}
	return next, nil
}

// Refresh reads the keys, the session file and policies again, and makes all connections look up
// their principals. If asked is set, it logs problems of the policies even if they were logged before. It reads the
// sources before the connections look anything up, so that the connections find the new values.
func (s *Shared) Refresh(asked bool) {
	s.authenticator.refresh()
	if s.keys != nil {
		s.keys.answers.Refresh()
	}
	if keys, ok := s.authenticator.keys.(*identity.Resolver); ok {
		_ = keys.Refresh() // the error is logged when a key is looked up
	}
	if s.policies != nil {
		err := s.policies.Refresh(context.Background(), asked)
		if err != nil && asked { // else it is logged when the policies are used
			s.Log.Warn("the policies cannot be used", "err", err)
		}
	}
	for _, c := range s.connections() {
		c.capture.Recheck()
	}
}

// Announce notifies every client of the lists that have changed for it. It calls changed for each connection, because
// clients have been notified of different lists.
func (s *Shared) Announce(changed func(*announce.Announce) []announce.List) {
	for _, c := range s.connections() {
		c.notify(changed(&c.announce))
	}
}

// connections returns the current connections. A connection may be closed as soon as mu is free.
func (p *process) connections() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.conns))
}
