package main

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/attache-mcp/attache/proxy"
)

// demoTasks are the open tasks in a workspace.
func demoTasks(workspace string) string {
	if workspace == "/src/shop" {
		return "/src/shop: fix the cart, add a wish list"
	}
	return workspace + ": nothing to do"
}

// newDemoServer returns an MCP server with one tool that cannot be called without
// a workspace, and one that needs none. It is an ordinary server: it knows nothing
// of attache.
func newDemoServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1.0.0"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	type inWorkspace struct {
		Workspace string `json:"workspace"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "list_tasks"},
		func(_ context.Context, _ *mcp.CallToolRequest, in inWorkspace) (*mcp.CallToolResult, any, error) {
			return demoText(demoTasks(in.Workspace)), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "list_projects"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return demoText("/src/shop, /src/blog"), nil, nil
		})
	return server
}

// demoText is a result of one block. The tools declare no output, so that block is
// all there is.
func demoText(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// A demoUpstream is a server in this process as the relay sees it.
type demoUpstream struct {
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	done   chan struct{} // closed when the server is gone
	err    error         // how it ended; written before done is closed
}

// startDemoServer starts the server the way proxy.Options.Start wants it.
func startDemoServer(context.Context) (proxy.Upstream, error) {
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	u := &demoUpstream{stdin: stdin, stdout: stdout, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		u.err = newDemoServer().Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
		out.Close()
	}()
	return u, nil
}

func (u *demoUpstream) Stdin() io.WriteCloser { return u.stdin }
func (u *demoUpstream) Stdout() io.Reader     { return u.stdout }

// Stop ends the server the way every stdio server is ended: its input is over.
func (u *demoUpstream) Stop() {
	u.stdin.Close()
	<-u.done
}

func (u *demoUpstream) Wait() error {
	<-u.done
	return u.err
}
