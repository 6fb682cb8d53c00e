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

// watch adds a hook that edits a list.
func (c *Conn) watch(call *middleware.Call, e listEdit) {
	// Otherwise a list over the hold limit would pass with what has to be hidden in it.
	if e.binds {
		call.MustHold()
	}
	// e is a copy for this request. Its hook runs once, with the one reply.
	e.c = c
	call.OnReply(func(ctx context.Context, reply *wire.Message) error {
		e.call = middleware.CallFrom(ctx)
		e.page(reply)
		return nil
	})
}

func (e *listEdit) page(reply *wire.Message) {
	// A list that binds is never too large here, because of MustHold.
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
	if e.list == "tools" { // the catalogue already has its tools
		if text := e.c.collision(e.view); text != "" {
			if e.c.once(text) {
				e.c.log.ErrorContext(e.call.LogContext(), "the server's list of tools was answered with an error", "why", text)
			}
			replace(e.call, reply, "two tools have one name", text)
			return
		}
	}
	e.remove(list)
	e.splices = middleware.LimitCaching(e.splices, e.call, layerName, result, e.private, e.view != nil && e.view.Modern)
	// Once, because the offsets of all splices are those of the reply as it came.
	if err := reply.Apply(e.splices...); err != nil {
		e.withhold(reply, err.Error())
	}
}

// collision returns the error if the client would see two tools of the server under one name,
// "" if not.
func (c *Conn) collision(view *sessionstate.Context) string {
	for i := range c.rules {
		name := c.rules[i].Rename
		// Each new name once, at its first rule.
		if name == "" || c.byNewName[name][0] != i {
			continue
		}
		if tools := c.knownAs(view, name); len(tools) > 1 {
			return ambiguousText(tools[0], tools[1], name)
		}
	}
	return ""
}

// knownAs returns the known tools of the server that the client would see under a name to which
// rules rename.
func (c *Conn) knownAs(view *sessionstate.Context, name string) (tools []string) {
	var in expression.Inputs
	for _, i := range c.byNewName[name] {
		if t := c.visible(&in, view, c.rules[i].Tools[0], &c.all); t.why == "" && t.rename == i && c.has(t.name) {
			tools = append(tools, t.name)
		}
	}
	if own := c.visible(&in, view, name, &c.all); own.why == "" && own.rename == none && c.has(name) {
		tools = append(tools, name)
	}
	return tools
}

// withhold replaces a list that cannot be edited by an error if something in it may have to be
// hidden or renamed. Other lists pass.
func (e *listEdit) withhold(reply *wire.Message, why string) {
	if !e.binds {
		e.call.Note(middleware.Note{Layer: layerName, Act: middleware.Failed, Why: "the list cannot be edited: " + why})
		e.c.log.WarnContext(e.call.LogContext(), "a list could not be edited and passes as it is", "why", why)
		return
	}
	e.c.log.WarnContext(e.call.LogContext(), "a list could not be edited and was answered with an error", "why", why)
	replace(e.call, reply, "the list cannot be edited: "+why, "the server's list could not be read, so that the rewrite rules could not be applied to it")
}

func replace(call *middleware.Call, reply *wire.Message, why, text string) {
	call.Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: why})
	// The id is cloned: it lies in the message that is replaced.
	*reply = *wire.ErrorReply(bytes.Clone(reply.ID()), wire.CodeInternalError, text)
}

// A listEdit edits the reply with one page of a list.
type listEdit struct {
	c       *Conn
	call    *middleware.Call
	view    *sessionstate.Context
	list    string                          // the member of the result
	hides   func(*listEdit, wire.Value) int // returns the rule that hides an entry, or none
	binds   bool                            // the list must not pass unedited
	private bool                            // the list depends on the session
	at      int                             // the index of the current entry in the list of the server
	splices []wire.Splice
}

func (e *listEdit) remove(list wire.Value) {
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

// tool returns the index of the rule that hides an entry of the list of tools, or none. It
// replaces the name and description of an entry that stays. An entry without a name is hidden if
// any rule hides tools: it cannot be called, and rules cannot be applied to it.
func (e *listEdit) tool(entry wire.Value) int {
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

// nameless returns the index of the rule that hides an entry without a name: the first rule
// that hides, or none.
func (c *Conn) nameless() int {
	if len(c.all.hide) == 0 {
		return none
	}
	return c.all.hide[0]
}

func (e *listEdit) set(rule int, act string, entry wire.Value, member, text string) {
	raw := wire.Quote(text)
	before := entry.Get(member)
	if before.Exists() {
		e.splices = append(e.splices, wire.Splice{Off: before.Off, Len: len(before.Raw), Text: raw})
	} else {
		e.splices = append(e.splices, wire.AddMember(entry, member, raw))
	}
	e.note(rule, act, member, before.Raw, raw)
}

func (e *listEdit) note(rule int, act, member string, before, after []byte) {
	if !e.call.Noted() {
		return
	}
	path := []string{"result", e.list, strconv.Itoa(e.at)}
	if member != "" {
		path = append(path, member)
	}
	e.c.note(e.call, rule, act, path, before, after)
}
