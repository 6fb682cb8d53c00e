package rewrite

import (
	"context"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// The protocol itself names a tool in two places, params.name of tools/call and
// name of an entry of tools/list. Progress, cancellations and tasks go by tokens
// and ids; an input_required asks for elicitation, sampling or roots, and the
// tools and tool_use blocks of sampling are a vocabulary of their own, which the
// server made for the model it asks.
//
// What is left is what servers put in members of their own making, most often in
// the data of an error. A member of these names, whose text is the server's name
// of a renamed tool to the letter, is taken for one:
//
//	error.data of a reply to a renamed call        tool, toolName, tool_name, name
//	error.data of a task, however it is told       tool, toolName, tool_name, name
//	params, params.data of a notification          tool, toolName, tool_name
//
// The reply's message and all other text stay: a name in prose may be a word.

var (
	ownMembers  = [...]string{"tool", "toolName", "tool_name"}
	dataMembers = [...]string{"tool", "toolName", "tool_name", "name"}
)

// replaced returns the splices that replace names of tools in members of obj. shown returns the
// client's name for a tool, "" if the name stays.
func replaced(obj wire.Value, members []string, shown func(string) string) (out []wire.Splice) {
	if !obj.IsObject() {
		return nil
	}
	for _, key := range members {
		v := obj.Get(key)
		if !v.IsString() {
			continue
		}
		if name := shown(v.View()); name != "" {
			out = append(out, wire.Splice{Off: v.Off, Len: len(v.Raw), Text: wire.Quote(name)})
		}
	}
	return out
}

// namesInReply returns the hook that puts the client's name of a tool into the error of its
// call.
func namesInReply(server, client string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if reply.Kind() != wire.Error || !reply.Plain() {
			return nil
		}
		return reply.Apply(replaced(reply.Get("error", "data"), dataMembers[:], func(name string) string {
			if name == server {
				return client
			}
			return ""
		})...)
	}
}

// namesInTask returns the hook for replies about a task, which an earlier call started.
func (c *Conn) namesInTask(view *sessionstate.Context) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if !reply.Plain() {
			return nil
		}
		shown := c.shown(view)
		edits := replaced(reply.Get("error", "data"), dataMembers[:], shown)
		return reply.Apply(append(edits, replaced(reply.Get("result", "error", "data"), dataMembers[:], shown)...)...)
	}
}

// namesInNotification puts the client's names of tools into a notification. A notification that
// cannot be edited passes, because a name is no secret.
func (c *Conn) namesInNotification(m *wire.Message) {
	params := m.Params()
	if !params.IsObject() {
		return
	}
	shown := c.shown(c.last.Load())
	edits := replaced(params, ownMembers[:], shown)
	edits = append(edits, replaced(params.Get("data"), ownMembers[:], shown)...)
	edits = append(edits, replaced(params.Get("error", "data"), dataMembers[:], shown)...)
	if err := m.Apply(edits...); err != nil {
		c.log.Debug("a notification names a tool as the server does", "why", err)
	}
}

// shown returns the function that maps the server's names of tools to the client's.
func (c *Conn) shown(view *sessionstate.Context) func(string) string {
	return func(name string) string {
		if !c.isNamed(name) {
			return ""
		}
		var in expression.Inputs
		if t := c.visible(&in, view, name, &c.all); t.rename != none {
			return c.rules[t.rename].Rename
		}
		return ""
	}
}
