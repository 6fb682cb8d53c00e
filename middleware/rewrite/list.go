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

// watchTools has the reply to a tools/list read, and edited if need be.
func (r *Rewrite) watchTools(call *middleware.Call, m *wire.Message, view *sessionstate.Context) {
	if !r.lists && !r.learns {
		return
	}
	if r.binds() {
		call.MustHold()
	}
	first := !m.Get("params", "cursor").Exists()
	call.OnReply(func(ctx context.Context, reply *wire.Message) error {
		r.showTools(ctx, reply, view, first)
		return nil
	})
}

// binds reports whether a list of tools must not be shown as it is.
func (r *Rewrite) binds() bool { return r.hides() || r.renames() }

// showTools learns from a page of the server's tools and edits it.
func (r *Rewrite) showTools(ctx context.Context, reply *wire.Message, view *sessionstate.Context, first bool) {
	if reply.Kind() == wire.Error || reply.TooLarge() {
		return
	}
	result := reply.Get("result")
	list := result.Get("tools")
	call := middleware.CallFrom(ctx)
	switch {
	case !reply.Plain(), list.Exists() && !list.IsArray():
		r.withhold(call, reply, r.binds(), reply.Ambiguity().String())
		return
	case !list.Exists():
		return
	}
	r.known.learn(list, first, !result.Get("nextCursor").Exists(), r.learns)
	if !r.lists {
		return
	}
	if a, b, name := r.collision(view); name != "" {
		r.collided(call, reply, ambiguous(a, b, name))
		return
	}
	e := edits{r: r, call: call, view: view, list: "tools"}
	e.remove(list, e.tool)
	if r.privateTools {
		e.splices = append(e.splices, middleware.PrivateList(e.call, layerName, result, view != nil && view.Modern)...)
	}
	e.apply(reply, r.binds())
}

// collision returns two of the server's tools that the client would know by one
// name; the name is empty if there are none.
func (r *Rewrite) collision(view *sessionstate.Context) (a, b, name string) {
	for i := range r.o.Rules {
		name := r.o.Rules[i].Rename
		if name == "" || r.byNew[name][0] != i {
			continue
		}
		if tools := r.knownAs(view, name); len(tools) > 1 {
			return tools[0], tools[1], name
		}
	}
	return "", "", ""
}

// knownAs returns the tools the server is known to have that the client would know
// by a name which rules give.
func (r *Rewrite) knownAs(view *sessionstate.Context, name string) (tools []string) {
	var in expression.Inputs
	for _, i := range r.byNew[name] {
		if t := r.visible(&in, view, r.o.Rules[i].Tools[0], &r.all); t.why == "" && t.rename == i && r.known.has(t.name) {
			tools = append(tools, t.name)
		}
	}
	if own := r.visible(&in, view, name, &r.all); own.why == "" && own.rename == none && r.known.has(name) {
		tools = append(tools, name)
	}
	return tools
}

// collided answers a list that would have two tools of one name.
func (r *Rewrite) collided(call *middleware.Call, reply *wire.Message, text string) {
	if r.once(text) {
		r.o.Log.ErrorContext(call.LogContext(), "the server's list of tools was answered with an error", "why", text)
	}
	replace(call, reply, "two tools have one name", text)
}

// withhold answers with an error in place of a list that cannot be edited, if
// something in it must not be seen as it is. Other lists pass.
func (r *Rewrite) withhold(call *middleware.Call, reply *wire.Message, binds bool, why string) {
	if !binds {
		call.Note(middleware.Note{Layer: layerName, Act: middleware.Failed, Why: "the list cannot be edited: " + why})
		r.o.Log.WarnContext(call.LogContext(), "a list could not be edited and passes as it is", "why", why)
		return
	}
	r.o.Log.WarnContext(call.LogContext(), "a list could not be edited and was answered with an error", "why", why)
	replace(call, reply, "the list cannot be edited: "+why, "the server's list could not be read, so that the rewrite rules could not be applied to it")
}

// replace makes an error of a reply.
func replace(call *middleware.Call, reply *wire.Message, why, text string) {
	call.Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: why})
	*reply = *wire.ErrorReply(bytes.Clone(reply.ID()), wire.CodeInternalError, text)
}

// edits are those of one list.
type edits struct {
	r       *Rewrite
	call    *middleware.Call
	view    *sessionstate.Context
	list    string // the member of the result
	at      int    // the entry being looked at
	splices []wire.Splice
}

// remove takes the entries out of a list that hides returns a rule for.
func (e *edits) remove(list wire.Value, hides func(wire.Value) int) {
	gone := wire.RemoveElements(list, func(entry wire.Value) bool {
		rule := hides(entry)
		if rule != none {
			e.note(rule, "hide", "", entry.Raw, nil)
		}
		e.at++
		return rule != none
	})
	e.splices = append(e.splices, gone...)
}

// tool returns the rule that hides an entry of the list of tools, none if it
// stays, and has its name and description replaced. An entry without a name is
// nobody's to call; the rules cannot be held against it, so it is hidden where
// any tool may be.
func (e *edits) tool(entry wire.Value) int {
	r, name := e.r, entry.Get("name")
	if !name.IsString() {
		return r.nameless()
	}
	in := expression.Inputs{Context: e.view, Tool: name.View(), Annotations: annotationsOf(entry), Server: r.o.Server}
	if rule, _ := r.hiddenBy(&in, r.all.hide); rule != none {
		return rule
	}
	if rule := r.renamedBy(&in, r.all.rename); rule != none {
		e.set(rule, "rename", entry, "name", r.o.Rules[rule].Rename)
	}
	if rule := r.describedBy(&in); rule != none {
		e.set(rule, "describe", entry, "description", r.o.Rules[rule].Describe)
	}
	return none
}

// nameless returns the rule that hides an entry without a name: the first that
// hides anything.
func (r *Rewrite) nameless() int {
	if !r.hides() {
		return none
	}
	return r.all.hide[0]
}

// set gives a member of an entry another text.
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
	e.r.note(e.call, rule, act, path, before, after)
}

// apply makes the edits; binds says that the list must not pass without them.
func (e *edits) apply(reply *wire.Message, binds bool) {
	if err := reply.Apply(e.splices...); err != nil {
		e.r.withhold(e.call, reply, binds, err.Error())
	}
}
