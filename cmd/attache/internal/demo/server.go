package demo

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

func taskList(workspace string) string {
	if workspace == "/src/shop" {
		return "/src/shop: fix the cart, add a wish list"
	}
	return workspace + ": nothing to do"
}

// newServer returns an MCP server with one tool that requires a workspace and one that does not. It does not
// know about attache.
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

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// startServer starts the server. It is a proxy.Options.Start.
func startServer(context.Context) (proxy.Upstream, error) {
	return mempipe.Serve(func(in io.Reader, out io.Writer) error {
		return newServer().Run(context.Background(), &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
	}), nil
}

type nopCloser struct{ io.Writer }

// Close does nothing, because the pipe is closed when the server returns.
func (nopCloser) Close() error { return nil }
