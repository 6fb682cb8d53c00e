package rewrite

import (
	"bytes"
	"context"
	"strconv"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// watchTools adds the hook that reads, and if necessary edits, the reply to tools/list.
func (c *Conn) watchTools(call *middleware.Call, view *sessionstate.Context) {
	if c.lists {
		c.watch(call, edits{view: view, list: "tools", binds: c.binds(), private: c.privateTools, hides: (*edits).tool})
	}
}

// watch adds the hook that makes the edits of a list.
func (c *Conn) watch(call *middleware.Call, of edits) {
	if of.binds {
		call.MustHold()
	}
	call.OnReply(func(ctx context.Context, reply *wire.Message) error {
		e := of
		e.c, e.call = c, middleware.CallFrom(ctx)
		e.show(reply)
		return nil
	})
}

// show edits a page of the list.
func (e *edits) show(reply *wire.Message) {
	if reply.Kind() == wire.Error || reply.TooLarge() {
		return
	}
	result := reply.Get("result")
	list := result.Get(e.list)
	switch {
	case !reply.Plain(), list.Exists() && !list.IsArray():
		e.withhold(reply, reply.Ambiguity().String())
		return
	case !list.Exists():
		return
	}
	if e.list == "tools" { // which the catalogue has learnt
		if a, b, name := e.c.collision(e.view); name != "" {
			e.c.replaceCollision(e.call, reply, ambiguous(a, b, name))
			return
		}
	}
	e.remove(list)
	if e.private {
		e.splices = append(e.splices, middleware.PrivateList(e.call, layerName, result, e.view != nil && e.view.Modern)...)
	}
	if err := reply.Apply(e.splices...); err != nil {
		e.withhold(reply, err.Error())
	}
}

// collision returns two tools of the server that the client would see under one name; the name
// is "" if there are none.
func (c *Conn) collision(view *sessionstate.Context) (a, b, name string) {
	for i := range c.rules {
		name := c.rules[i].Rename
		if name == "" || c.byNew[name][0] != i {
			continue
		}
		if tools := c.knownAs(view, name); len(tools) > 1 {
			return tools[0], tools[1], name
		}
	}
	return "", "", ""
}

// knownAs returns the known tools of the server that the client would see under a name which
// rules give.
func (c *Conn) knownAs(view *sessionstate.Context, name string) (tools []string) {
	var in expression.Inputs
	for _, i := range c.byNew[name] {
		if t := c.visible(&in, view, c.rules[i].Tools[0], &c.all); t.why == "" && t.rename == i && c.has(t.name) {
			tools = append(tools, t.name)
		}
	}
	if own := c.visible(&in, view, name, &c.all); own.why == "" && own.rename == none && c.has(name) {
		tools = append(tools, name)
	}
	return tools
}

// replaceCollision replaces a list that would have two tools of one name by an error.
func (c *Conn) replaceCollision(call *middleware.Call, reply *wire.Message, text string) {
	if c.once(text) {
		c.log.ErrorContext(call.LogContext(), "the server's list of tools was answered with an error", "why", text)
	}
	replace(call, reply, "two tools have one name", text)
}

// withhold replaces a list that cannot be edited by an error if it may show something that must
// be hidden or renamed. Other lists pass.
func (e *edits) withhold(reply *wire.Message, why string) {
	if !e.binds {
		e.call.Note(middleware.Note{Layer: layerName, Act: middleware.Failed, Why: "the list cannot be edited: " + why})
		e.c.log.WarnContext(e.call.LogContext(), "a list could not be edited and passes as it is", "why", why)
		return
	}
	e.c.log.WarnContext(e.call.LogContext(), "a list could not be edited and was answered with an error", "why", why)
	replace(e.call, reply, "the list cannot be edited: "+why, "the server's list could not be read, so that the rewrite rules could not be applied to it")
}

// replace turns a reply into an error.
func replace(call *middleware.Call, reply *wire.Message, why, text string) {
	call.Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: why})
	*reply = *wire.ErrorReply(bytes.Clone(reply.ID()), wire.CodeInternalError, text)
}

// edits are the edits of one list.
type edits struct {
	c       *Conn
	call    *middleware.Call
	view    *sessionstate.Context
	list    string                       // the member of the result
	hides   func(*edits, wire.Value) int // returns the rule that hides an entry, none if it stays
	binds   bool                         // the list must not pass without the edits
	private bool                         // what is listed depends on who asks
	at      int                          // the entry being looked at
	splices []wire.Splice
}

// remove removes the entries that are hidden.
func (e *edits) remove(list wire.Value) {
	gone := wire.RemoveElements(list, func(entry wire.Value) bool {
		rule := e.hides(e, entry)
		if rule != none {
			e.note(rule, "hide", "", entry.Raw, nil)
		}
		e.at++
		return rule != none
	})
	e.splices = append(e.splices, gone...)
}

// tool returns the index of the rule that hides an entry of the list of tools, none if it stays,
// and replaces its name and description. An entry without a name cannot be called, and rules
// cannot be applied to it, so it is hidden if a rule hides any tool.
func (e *edits) tool(entry wire.Value) int {
	c, name := e.c, entry.Get("name")
	if !name.IsString() {
		return c.nameless()
	}
	in := expression.Inputs{Context: e.view, Tool: name.View(), Annotations: middleware.AnnotationsOf(entry), Server: c.server}
	if rule, _ := c.hiddenBy(&in, c.all.hide); rule != none {
		return rule
	}
	if rule := c.first(&in, keepsName, c.all.rename); rule != none {
		e.set(rule, "rename", entry, "name", c.rules[rule].Rename)
	}
	if rule := c.first(&in, "it keeps its description", c.all.describe); rule != none {
		e.set(rule, "describe", entry, "description", c.rules[rule].Describe)
	}
	return none
}

// nameless returns the rule that hides an entry without a name: the first that
// hides anything.
func (c *Conn) nameless() int {
	if !c.hides() {
		return none
	}
	return c.all.hide[0]
}

// set replaces the text of a member of an entry.
func (e *edits) set(rule int, act string, entry wire.Value, member, text string) {
	raw := wire.Quote(text)
	before := entry.Get(member)
	if before.Exists() {
		e.splices = append(e.splices, wire.Splice{Off: before.Off, Len: len(before.Raw), Text: raw})
	} else {
		e.splices = append(e.splices, wire.AddMember(entry, member, raw))
	}
	e.note(rule, act, member, before.Raw, raw)
}

func (e *edits) note(rule int, act, member string, before, after []byte) {
	if !e.call.Noted() {
		return
	}
	path := []string{"result", e.list, strconv.Itoa(e.at)}
	if member != "" {
		path = append(path, member)
	}
	e.c.note(e.call, rule, act, path, before, after)
}
