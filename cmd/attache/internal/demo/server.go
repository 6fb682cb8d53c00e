package demo

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/attache-mcp/attache/proxy"
)

// taskList are the open tasks in a workspace.
func taskList(workspace string) string {
	if workspace == "/src/shop" {
		return "/src/shop: fix the cart, add a wish list"
	}
	return workspace + ": nothing to do"
}

// newServer returns an MCP server with one tool that cannot be called without
// a workspace, and one that needs none. It is an ordinary server: it knows nothing
// of attache.
func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1.0.0"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	type inWorkspace struct {
		Workspace string `json:"workspace" jsonschema:"path of the workspace"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "list_tasks"},
		func(_ context.Context, _ *mcp.CallToolRequest, in inWorkspace) (*mcp.CallToolResult, any, error) {
			return textResult(taskList(in.Workspace)), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "list_projects"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return textResult("/src/shop, /src/blog"), nil, nil
		})
	return server
}

// textResult is a result of one block. The tools declare no output, so that block is
// all there is.
func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// A upstream is a server in this process as the relay sees it.
type upstream struct {
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	done   chan struct{} // closed when the server is gone
	err    error         // how it ended; written before done is closed
}

// startServer starts the server the way proxy.Options.Start wants it.
func startServer(context.Context) (proxy.Upstream, error) {
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	u := &upstream{stdin: stdin, stdout: stdout, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		u.err = newServer().Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
		out.Close()
	}()
	return u, nil
}

func (u *upstream) Stdin() io.WriteCloser { return u.stdin }
func (u *upstream) Stdout() io.Reader     { return u.stdout }

// Stop ends the server the way every stdio server is ended: its input is over.
func (u *upstream) Stop() {
	u.stdin.Close()
	<-u.done
}

func (u *upstream) Wait() error {
	<-u.done
	return u.err
}
