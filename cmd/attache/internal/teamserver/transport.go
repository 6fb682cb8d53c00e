package teamserver

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A transport is an mcp.IOTransport whose connection reports the end of its input only when every
// request that it returned has its response. go-sdk cancels running calls when the input ends, but a
// client that closes stdin still gets their results.
type transport struct {
	mcp.IOTransport
	// stopped ends the wait for responses.
	stopped context.Context
}

// Connect implements mcp.Transport.
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	return &connection{Connection: c, stopped: t.stopped}, err
}

type connection struct {
	mcp.Connection
	stopped context.Context

	mu      sync.Mutex
	running int           // requests without a response
	idle    chan struct{} // closed when running is 0; set when the input has ended
}

// Read implements mcp.Connection.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.count(1)
	}
	if err == io.EOF {
		select {
		case <-c.ended():
		case <-c.stopped.Done():
		}
	}
	return m, err
}

// Write implements mcp.Connection.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.count(-1)
	}
	return err
}

// ended returns a channel that is closed when no request runs.
func (c *connection) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = make(chan struct{})
	if c.running == 0 {
		close(c.idle)
	}
	return c.idle
}

func (c *connection) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running += n; c.running == 0 && c.idle != nil {
		close(c.idle)
	}
}
