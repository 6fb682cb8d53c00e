// Package teamserver is the MCP server of attache teams. Its tools let an agent create sessions in its
// workspace, send messages to sessions, list them, read its own messages, and end the sessions that it
// created.
//
// The server runs in this process. Like any other server, it is behind the relay and all layers. The
// session that calls a tool is never an argument: the layer of package middleware/teams determines it.
package teamserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/proxy/mempipe"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// Name is the name of the server in initialize.
const Name = "attache-teams"

// instructions are the server's instructions for the model.
const instructions = `Sessions of agents in this workspace. create_session starts an agent that works on its own; its result comes to you as a message when it is over. Messages for you come in front of the results of any tool, or by read_messages. They are written by other agents, not by your user.`

// A Server provides the tools.
type Server struct {
	ToolCalls *teams.ToolCalls
	Launcher  *agents.Launcher
	Version   string
	Log       *slog.Logger
}

// Start starts the server in this process.
func (s *Server) Start() *mempipe.Server {
	return mempipe.Serve(func(in io.Reader, out io.Writer) error {
		leaving, leave := context.WithCancel(context.Background())
		defer leave()
		pipes := mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}}
		return s.server(leaving).Run(context.Background(), &transport{IOTransport: pipes, leave: leave})
	})
}

type nopCloser struct{ io.Writer }

// Close does nothing, because the pipe is closed when the server returns.
func (nopCloser) Close() error { return nil }

// server returns the server for a client that has closed its end when leaving is done.
func (s *Server) server(leaving context.Context) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: Name, Version: s.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range s.tools() {
		t.tool.InputSchema = json.RawMessage(t.schema)
		server.AddTool(t.tool, s.handler(leaving, t.run))
	}
	return server
}

type call struct {
	*Server
	toolCall  *teams.ToolCall
	db        *store.Store
	me        *store.Session
	leaving   context.Context // done when the client has closed its end
	arguments json.RawMessage
	request   *mcp.CallToolRequest
}

// handler returns the handler of a tool. The result is one text block with the value that run returns,
// as JSON. It has no structuredContent, because some clients show nothing else of a result that has it,
// and would hide the messages in front of the text. An error becomes a result, so that the model reads it.
func (s *Server) handler(leaving context.Context, run func(context.Context, *call) (any, error)) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		handle, _ := request.Params.Meta[teams.CallKey].(string)
		c := &call{Server: s, toolCall: s.ToolCalls.Get(handle), leaving: leaving, arguments: request.Params.Arguments, request: request}
		out, err := c.do(ctx, run)
		if err != nil {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: c.refusal(err)}}}, nil
		}
		var text strings.Builder
		to := json.NewEncoder(&text)
		to.SetIndent("", "  ")
		to.SetEscapeHTML(false) // models read the text, which often contains code
		if err := to.Encode(out); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.TrimSpace(text.String())}}}, nil
	}
}

func (c *call) do(ctx context.Context, run func(context.Context, *call) (any, error)) (any, error) {
	if err := checkArguments(c.arguments); err != nil {
		return nil, err
	}
	var err error
	if c.db, c.me, err = c.toolCall.Session(ctx); err != nil {
		return nil, err
	}
	return run(ctx, c)
}

// refusal returns the text that tells the agent of an error. Errors that are not refusals all have the
// same text, and are logged.
func (c *call) refusal(err error) string {
	if refusal, ok := errors.AsType[store.Refusal](err); ok && refusal != store.ErrUnavailable {
		if c.toolCall != nil {
			c.toolCall.Note(middleware.Refused, refusal.Error())
		}
		if refusal == store.ErrNoContext {
			c.Log.Warn("a tool of attache teams was refused, because the session or its workspace is not known: set --workspace, or use a client that offers roots; a client that holds many conversations needs --session, too")
		}
		return refusal.Error()
	}
	if !errors.Is(err, context.Canceled) {
		c.Log.Warn("a tool of attache teams failed", "err", err)
	}
	return store.ErrUnavailable.Error()
}

// at returns a time in the format of results.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }
