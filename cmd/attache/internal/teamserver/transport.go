package teamserver

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A transport is an mcp.IOTransport that hides the end of its input until all requests are answered. A
// client that closes stdin still gets the results of running calls, which go-sdk would cancel.
type transport struct {
	mcp.IOTransport
	// leave is called when the input ends.
	leave context.CancelFunc
}

// Connect implements mcp.Transport.
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	out := &connection{Connection: c, leave: t.leave, running: map[jsonrpc.ID]bool{}}
	out.answered.L = &out.mu
	return out, err
}

type connection struct {
	mcp.Connection
	leave context.CancelFunc

	mu       sync.Mutex
	running  map[jsonrpc.ID]bool // requests without a response; go-sdk sends one for two with the same id
	answered sync.Cond           // a request has its response
}

// Read implements mcp.Connection.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.running[r.ID] = true
	}
	if err == io.EOF {
		c.leave()
		// After a write that failed, go-sdk sends no more responses. Then mempipe.Server.Stop ends the server.
		for len(c.running) > 0 {
			c.answered.Wait()
		}
	}
	return m, err
}

// Write implements mcp.Connection.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, r.ID)
		c.answered.Broadcast()
	}
	return err
}
