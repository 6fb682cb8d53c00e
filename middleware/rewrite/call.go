package rewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A target is the tool that a call is for.
type target struct {
	name   string // the server's name
	rename int    // the rule that renamed it, or none
	rule   int    // the rule that refuses the call, or none
	why    string // why the call is refused, "" if it is not
	other  string // the other tool that the client sees under the same name, if there is one
}

// call handles a call. If a rule for it depends on annotations, the call waits once until they are known.
// A call that cannot wait (see [middleware.Call.Suspend]) is refused.
func (c *Conn) call(ctx context.Context, m *wire.Message, view *sessionstate.Context, next middleware.Handler, waited bool) error {
	call := middleware.CallFrom(ctx)
	name := m.Name().View()
	if ready, rule := c.askAnnotations(call, m, view, name, waited); ready != nil {
		call.Suspend(m, ready, middleware.AskTime, func(ctx context.Context, m *wire.Message) error {
			// Suspend resumes at once what cannot wait; then ready is still open.
			select {
			case <-ready:
				return c.call(ctx, m, view, next, true)
			default:
				return c.refuseName(ctx, m, target{rule: rule, why: "its annotations are not known yet, and neither a notification nor a member of a batch can wait for them"}, m.Name().View())
			}
		})
		return nil
	}
	t := c.resolve(view, name)
	if t.why != "" {
		return c.refuseName(ctx, m, t, name)
	}
	if refusal := c.change(call, m, view, t); refusal.text != "" {
		return c.refuse(ctx, m, view, refusal)
	}
	return next(ctx, m)
}

// askAnnotations asks the server for its tools if a rule for the tool that the client calls by a name, or for one
// that is renamed to it, depends on annotations that are not known. It returns that rule, and a channel that is
// closed when the tools are known, or nil if there is nothing to wait for.
func (c *Conn) askAnnotations(call *middleware.Call, m *wire.Message, view *sessionstate.Context, name string, waited bool) (ready <-chan struct{}, rule int) {
	if waited || !c.readAnnotations {
		return nil, none
	}
	tools := []string{name}
	// The name may be that of another tool for the client, so the rules for this one count, too.
	for _, i := range c.byNewName[name] {
		tools = append(tools, c.rules[i].Tools[0])
	}
	for _, tool := range tools {
		if _, known := c.catalog.Tool(tool); known {
			continue
		}
		c.setInputs(&c.in, view, tool)
		c.in.Arguments = m.Arguments().Raw
		// A condition that does not hold whatever the annotations are needs no list.
		rule := c.matching.Of(tool).dependsOnAnnotations(c.rules, &c.in)
		c.in.Clear()
		if rule != none {
			if ready := c.catalog.AskUnknown(tool, call, m); ready != nil {
				return ready, rule
			}
		}
	}
	return nil, none
}

// change edits a call for the server.
func (c *Conn) change(call *middleware.Call, m *wire.Message, view *sessionstate.Context, t target) refusal {
	set := c.matching.Of(t.name).set
	// Most calls have no values to set, and need no inputs.
	if len(set) == 0 && !call.Explained() {
		return c.edit(call, m, t)
	}
	c.setInputs(&c.in, view, t.name)
	c.in.Arguments = m.Arguments().Raw
	refusal := c.evaluate(set)
	if refusal.text == "" {
		refusal = c.edit(call, m, t)
	}
	if call.Explained() {
		c.explain(call, t)
	}
	// Both may refer to the frame, which must not stay in memory.
	c.in.Clear()
	c.values = c.values[:0]
	return refusal
}

// resolve returns the tool that the client calls by a name: a tool that is renamed to it, or the
// tool that has this name itself. Of several, it returns the one that the server is known to have.
// If the server has more than one of them, or none is known, the name is ambiguous.
func (c *Conn) resolve(view *sessionstate.Context, name string) target {
	own := c.visible(&c.in, view, name, c.matching.Of(name))
	// known says that the server is known to have found. Without a list nothing is known, and then a tool that a rule
	// renames to the name is preferred to one that may have the name itself.
	found, known := target{rename: none}, false
	for _, i := range c.byNewName[name] {
		name := c.rules[i].Tools[0]
		t := c.visible(&c.in, view, name, c.matching.Of(name))
		// Another rule may hide this tool, or give it another name first.
		if t.why == "" && t.rename == i {
			found, known = c.better(found, known, t)
		}
	}
	switch {
	// A tool with the name itself competes with a renamed one only if the server is known to have
	// it.
	case found.name != "" && own.why == "" && own.rename == none && c.has(name):
		found, _ = c.better(found, known, own)
	// The tool is there, but the client knows it by its new name alone.
	case found.name == "" && own.rename != none:
		own.rule, own.why = own.rename, "the tool is known by another name"
		return own
	case found.name == "":
		return own
	}
	if found.other != "" {
		found.rule, found.why = found.rename, "two tools have that name"
	}
	return found
}

// better returns the one of two tools that the server is known to have, and whether the server
// has it. If both or neither are known, it sets found.other to t.
func (c *Conn) better(found target, known bool, t target) (target, bool) {
	switch has := c.has(t.name); {
	case found.name == "" || has && !known:
		return t, has
	// Both are known, or neither is: attache cannot tell which one is meant.
	case has == known:
		found.other = t.name
	}
	return found, known
}

// visible returns the target for a tool of the server: the rule that renames it, or the reason
// why it is hidden. rules are the rules that may apply to the tool. in must be empty; it is used
// and emptied again.
func (c *Conn) visible(in *expression.Inputs, view *sessionstate.Context, name string, rules *ruleSet) target {
	t := target{name: name, rename: none, rule: none}
	// The common case, without the look-up of annotations.
	if len(rules.hide) == 0 && len(rules.rename) == 0 {
		return t
	}
	c.setInputs(in, view, name)
	var err error
	if t.rule, err = c.hiddenBy(in, rules.hide); t.rule != none {
		t.why = hiddenText("tool", err)
	} else {
		t.rename = c.first(in, keepsName, rules.rename)
	}
	// in may refer to a frame, whose memory is used again.
	in.Clear()
	return t
}

// keepsName is the consequence of a rename rule that cannot be evaluated.
const keepsName = "it keeps its name"

// hiddenText returns the reason why a tool, prompt or resource is hidden.
func hiddenText(what string, err error) string {
	if err != nil {
		return "the " + what + " is hidden, as the rule could not be decided: " + err.Error()
	}
	return "the " + what + " is hidden"
}

// refuseName answers a call to a name that is unknown or ambiguous. An unknown name gets the error
// that the specification has for unknown tools (server/tools, "Error Handling"). A server without
// the tool sends the same, so it discloses no rules.
func (c *Conn) refuseName(ctx context.Context, m *wire.Message, t target, name string) error {
	// why is for the operator alone: that a tool is hidden must not show.
	middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Rule: c.key(t.rule), Act: middleware.Refused, Why: t.why})
	code, text := wire.CodeInvalidParams, "Unknown tool: "+middleware.Clip(name)
	if t.other != "" {
		code, text = wire.CodeInternalError, ambiguousText(t.name, t.other, name)
	}
	c.log.InfoContext(ctx, "a call was refused", "name", middleware.Clip(name), "rule", c.key(t.rule), "why", t.why)
	return c.answer(ctx, m, wire.ErrorReply(m.ID(), code, text))
}

// answer answers m in place of the server. A notification is dropped.
func (c *Conn) answer(ctx context.Context, m, reply *wire.Message) error {
	if m.Kind() != wire.Request {
		return nil
	}
	return middleware.CallFrom(ctx).Answer(ctx, reply)
}

// ambiguousText returns the error for two tools of the server that the client sees under one name.
func ambiguousText(a, b, name string) string {
	return fmt.Sprintf("the rewrite rules show two tools as %q: the server's %q and %q. Rename one of them otherwise, or hide it", name, a, b)
}

type value struct {
	rule    int
	setting *Setting
	raw     []byte
}

// A refusal is the reason why a request is refused: text is for the model, why for the operator.
// An empty text means that it is not refused.
type refusal struct {
	rule int
	text string
	why  string
}

const textFailed = "Permission denied: the rewrite rules could not be applied to this call"

// evaluate evaluates the values that the rules set for the call.
func (c *Conn) evaluate(rules []int) refusal {
	for _, i := range rules {
		rule := &c.rules[i]
		result, err := rule.judge(&c.in)
		switch result {
		// set enforces: the operator wants this value, so the call must not go without it.
		case undecided:
			return refusal{i, textFailed, err.Error()}
		case applies:
			if err := c.collect(i, rule); err != nil {
				return refusal{i, textFailed, err.Error()}
			}
		}
	}
	return refusal{}
}

// collect adds the values of rule i to those of the call, except for arguments that an earlier
// rule has set, directly or as part of an object.
func (c *Conn) collect(i int, rule *Rule) error {
	for n := range rule.Set {
		s := &rule.Set[n]
		// The first rule counts, also if it sets an object around the argument.
		if slices.ContainsFunc(c.values, func(v value) bool { return isInside(s.Path, v.setting.Path) }) {
			continue
		}
		if err := s.Value.Identified(c.in.Context); err != nil {
			return err
		}
		result, err := s.Value.Eval(&c.in)
		if err != nil {
			return err
		}
		v := value{i, s, result.JSON}
		if slices.ContainsFunc(c.values, func(v value) bool { return isInside(v.setting.Path, s.Path) }) {
			c.values = slices.Insert(c.values, 0, v) // set it before the values inside it, which it would replace
			continue
		}
		c.values = append(c.values, v)
	}
	return nil
}

// edit sets the server's name of the tool, and the arguments.
func (c *Conn) edit(call *middleware.Call, m *wire.Message, t target) refusal {
	if t.rename != none {
		to := c.rules[t.rename].quoted
		if call.Noted() {
			c.note(call, t.rename, "rename", []string{"params", "name"}, m.Name().Raw, to)
		}
		if err := m.Set(to, "params", "name"); err != nil {
			return refusal{t.rename, textFailed, err.Error()}
		}
		// The reply may name the tool by the name that the client does not know.
		call.OnReply(namesInReply(t.name, c.rules[t.rename].Rename))
	}
	for i := range c.values {
		if refused := c.set(call, m, &c.values[i]); refused.text != "" {
			return refused
		}
	}
	return refusal{}
}

func (c *Conn) set(call *middleware.Call, m *wire.Message, v *value) refusal {
	s := v.setting
	// Read again for each value, because the one before may have moved or made it.
	before := m.Get(s.keys...).Raw
	if bytes.Equal(before, v.raw) { // the call has the value, and keeps its bytes
		return refusal{}
	}
	switch err := m.Set(v.raw, s.keys...); {
	case errors.Is(err, wire.ErrShape):
		// The model can mend this, so the text says how.
		outer := strings.Join(s.Path[:len(s.Path)-1], ".")
		return refusal{v.rule, fmt.Sprintf("invalid arguments: %q must be an object, or be left out", outer), err.Error()}
	case err != nil:
		return refusal{v.rule, textFailed, err.Error()}
	}
	if call.Noted() {
		c.note(call, v.rule, c.source(s.Value), s.keys, before, v.raw)
	}
	return refusal{}
}

// source returns the origin of a value, for people.
func (c *Conn) source(p *expression.Program) string {
	if path := p.Path(); sessionstate.KnownPath(path) {
		fact, _ := c.in.Context.Lookup(path)
		return path + " from " + fact.From
	}
	return p.String()
}

// note makes a note of an edit. Check [middleware.Call.Noted] first.
func (c *Conn) note(call *middleware.Call, rule int, source string, path []string, before, after []byte) {
	call.Note(middleware.Note{Layer: layerName, Rule: c.key(rule), Act: middleware.Edited, Path: path, Before: before, After: after, Source: source})
}

func (c *Conn) refuse(ctx context.Context, m *wire.Message, view *sessionstate.Context, f refusal) error {
	middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Rule: c.key(f.rule), Act: middleware.Refused, Why: f.why})
	c.log.WarnContext(ctx, "a call was refused, as its arguments could not be set", "rule", c.key(f.rule), "why", f.why)
	return c.answer(ctx, m, wire.RefusalReply(m, f.text, view != nil && view.Modern))
}

// explain makes notes of the rules that changed nothing in a call.
func (c *Conn) explain(call *middleware.Call, t target) {
	// All rules, not only those of the tool: a user asks why a rule does nothing.
	for i := range c.rules {
		rule := &c.rules[i]
		result, err := rule.judge(&c.in)
		act, why := middleware.Skipped, string(result)
		switch {
		case err != nil:
			act, why = middleware.Failed, why+": "+err.Error()
		case i == t.rename, result == applies && len(rule.Set) > 0:
			continue
		case result == applies && rule.Rename != "":
			why = "an earlier rule has renamed the tool"
		case result == applies:
			why = "it changes how the tool is listed, not its calls"
		}
		call.Note(middleware.Note{Layer: layerName, Rule: c.key(i), Act: act, Why: why})
	}
}
