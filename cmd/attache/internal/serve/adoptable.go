package serve

import (
	"sync"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/remote"
)

// An adoptable is the upstream of a session that may go on in another process: a remote server
// keeps its session, and a process does not.
type adoptable struct {
	mu     sync.Mutex
	server *remote.Server // the last one; nil for a process
	left   bool
}

// set takes the upstream in place of the one before.
func (a *adoptable) set(up proxy.Upstream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server, _ = up.(*remote.Server); a.server != nil && a.left {
		a.server.Keep()
	}
}

// state returns what the session of the server goes on with, "" for nothing.
func (a *adoptable) state() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server == nil {
		return ""
	}
	return a.server.State()
}

// leave leaves the session of the server to another process.
func (a *adoptable) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left = true; a.server != nil {
		a.server.Keep()
	}
}
