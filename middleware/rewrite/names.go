package rewrite

import (
	"context"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// The protocol itself names a tool in two places: params.name of tools/call, and name of
// an entry of tools/list. Progress, cancellations and tasks use tokens and ids. An
// input_required asks for elicitation, sampling or roots, and the tools and tool_use
// blocks of sampling are tools that the server defines for the model that it asks.
//
// Servers also name tools in members of their own, most often in the data of an error. A
// member with one of these names is replaced if its value is exactly the server's name of
// a renamed tool:
//
//	error.data of a reply to a renamed call        tool, toolName, tool_name, name
//	error.data of a task, in any message           tool, toolName, tool_name, name
//	params, params.data of a notification          tool, toolName, tool_name
//
// Error messages and all other text stay as they are, because a name in prose may be an
// ordinary word.

// The params of a notification may have a name that is not that of a tool, so the first list lacks name.
var (
	paramsMembers = []string{"tool", "toolName", "tool_name"}
	dataMembers   = []string{"tool", "toolName", "tool_name", "name"}
)

// replaceNames returns the splices that replace names of tools in members of obj. clientName
// returns the client's name for a tool, "" if the name stays.
func replaceNames(obj wire.Value, members []string, clientName func(string) string) (out []wire.Splice) {
	if !obj.IsObject() {
		return nil
	}
	for _, key := range members {
		v := obj.Get(key)
		if !v.IsString() {
			continue
		}
		if name := clientName(v.View()); name != "" {
			out = append(out, wire.Splice{Off: v.Off, Len: len(v.Raw), Text: wire.Quote(name)})
		}
	}
	return out
}

// namesInReply returns the hook that replaces the server's name of a tool in the error of a
// call by the client's.
func namesInReply(server, client string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if reply.Kind() != wire.Error || !reply.Plain() {
			return nil
		}
		return reply.Apply(replaceNames(reply.Get("error", "data"), dataMembers, func(name string) string {
			if name == server {
				return client
			}
			return ""
		})...)
	}
}

// namesInTask returns the hook that replaces names in replies about a task.
func (c *Conn) namesInTask(view *sessionstate.Context) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if !reply.Plain() {
			return nil
		}
		clientName := c.clientName(view)
		edits := replaceNames(reply.Get("error", "data"), dataMembers, clientName)
		return reply.Apply(append(edits, replaceNames(reply.Get("result", "error", "data"), dataMembers, clientName)...)...)
	}
}

// namesInNotification replaces names of tools in a notification. A notification that cannot be
// edited passes, because a name is not a secret.
func (c *Conn) namesInNotification(m *wire.Message) {
	params := m.Params()
	// See fromServer: which call it belongs to is unknown.
	clientName := c.clientName(c.last.Load())
	edits := replaceNames(params, paramsMembers, clientName)
	edits = append(edits, replaceNames(params.Get("data"), paramsMembers, clientName)...)
	edits = append(edits, replaceNames(params.Get("error", "data"), dataMembers, clientName)...)
	if err := m.Apply(edits...); err != nil {
		c.log.Debug("the names of tools in a notification could not be replaced", "why", err)
	}
}

// clientName returns the function that maps the server's name of a tool to the client's, and
// to "" if it stays.
func (c *Conn) clientName(view *sessionstate.Context) func(string) string {
	return func(name string) string {
		if !c.isRenamed(name) {
			return ""
		}
		var in expression.Inputs
		// With all rules: matching belongs to the client's direction, and this runs in the server's.
		if t := c.visible(&in, view, name, &c.all); t.rename != none {
			return c.rules[t.rename].Rename
		}
		return ""
	}
}
