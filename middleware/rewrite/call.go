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

// A target is what a call goes to.
type target struct {
	name   string // the server's
	rename int    // the rule that gave it the name called, none if it kept its own
	rule   int    // the rule that refuses the call, none if there is none
	why    string // why it is refused, "" if it goes on
	both   string // the other tool of that name, if there are two
}

// call takes a call from the client.
func (r *Rewrite) call(ctx context.Context, m *wire.Message, view *sessionstate.Context, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	given := m.Name().View()
	t := r.resolve(view, given)
	if t.why != "" {
		return r.refuse(ctx, m, t, given)
	}
	if refusal := r.change(call, m, view, t); refusal.text != "" {
		return r.turnDown(ctx, m, view, refusal)
	}
	return next(ctx, m)
}

// change makes of the call what the server is to see.
func (r *Rewrite) change(call *middleware.Call, m *wire.Message, view *sessionstate.Context, t target) refusal {
	set := r.some.Of(t.name).set
	if len(set) == 0 && !call.Explained() {
		return r.edit(call, m, t)
	}
	r.fill(&r.in, view, t.name)
	r.in.Arguments = m.Arguments().Raw
	refusal := r.evaluate(set)
	if refusal.text == "" {
		refusal = r.edit(call, m, t)
	}
	if call.Explained() {
		r.explain(call, t)
	}
	r.in.Clear()
	r.values = r.values[:0]
	return refusal
}

// resolve returns what the client means by a name: a tool that is given it, or
// the one whose own it is. Of several the server is known to have one counts; if
// it has more, or none is known, nobody can tell.
func (r *Rewrite) resolve(view *sessionstate.Context, given string) target {
	own := r.visible(&r.in, view, given, r.some.Of(given))
	found, known := target{rename: none}, false
	for _, i := range r.byNew[given] {
		name := r.o.Rules[i].Tools[0]
		t := r.visible(&r.in, view, name, r.some.Of(name))
		if t.why == "" && t.rename == i {
			found, known = r.better(found, known, t)
		}
	}
	switch {
	case found.name != "" && own.why == "" && own.rename == none && r.known.has(given):
		found, _ = r.better(found, known, own)
	case found.name == "" && own.rename != none:
		own.rule, own.why = own.rename, "the tool is known by another name"
		return own
	case found.name == "":
		return own
	}
	if found.both != "" {
		found.rule, found.why = found.rename, "two tools have that name"
	}
	return found
}

// better returns the one of two tools that the server is known to have, and
// whether it is. If that does not tell them apart, t is the other of found.
func (r *Rewrite) better(found target, known bool, t target) (target, bool) {
	switch has := r.known.has(t.name); {
	case found.name == "" || has && !known:
		return t, has
	case has == known:
		found.both = t.name
	}
	return found, known
}

// visible returns what the client may see of a tool of the server's: under which
// name, or why not. Some rules have a say, all others are for other tools. It uses
// in, which is empty, and leaves it so.
func (r *Rewrite) visible(in *expression.Inputs, view *sessionstate.Context, name string, some *rules) target {
	t := target{name: name, rename: none, rule: none}
	if len(some.hide) == 0 && len(some.rename) == 0 {
		return t
	}
	r.fill(in, view, name)
	var err error
	if t.rule, err = r.hiddenBy(in, some.hide); t.rule != none {
		t.why = hidden("tool", err)
	} else {
		t.rename = r.renamedBy(in, some.rename)
	}
	in.Clear()
	return t
}

// hidden says why something is hidden.
func hidden(what string, err error) string {
	if err != nil {
		return "the " + what + " is hidden, as the rule could not be decided: " + err.Error()
	}
	return "the " + what + " is hidden"
}

// refuse answers a call to a name that stands for no tool, or for two. The error
// is the one the specification has for unknown tools (server/tools, "Error
// Handling"): clients expect it of a server that has no such tool, and so it
// tells nothing of rules.
func (r *Rewrite) refuse(ctx context.Context, m *wire.Message, t target, given string) error {
	middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Rule: r.key(t.rule), Act: middleware.Refused, Why: t.why})
	code, text := wire.CodeInvalidParams, "Unknown tool: "+cut(given)
	if t.both != "" {
		code, text = wire.CodeInternalError, ambiguous(t.name, t.both, given)
	}
	r.o.Log.InfoContext(ctx, "a call was refused", "name", cut(given), "rule", r.key(t.rule), "why", t.why)
	return r.answer(ctx, m, wire.ErrorReply(m.ID(), code, text))
}

// answer answers m in place of the server. A notification is dropped.
func (r *Rewrite) answer(ctx context.Context, m, reply *wire.Message) error {
	if m.Kind() != wire.Request {
		return nil
	}
	return middleware.CallFrom(ctx).Answer(ctx, reply)
}

// ambiguous says that two of the server's tools have one name for the client.
func ambiguous(a, b, name string) string {
	return fmt.Sprintf("the rewrite rules show two tools as %q: the server's %q and %q. Rename one of them otherwise, or hide it", name, a, b)
}

// A value is what one argument is set to.
type value struct {
	rule    int
	setting *Setting
	raw     []byte
}

// A refusal says that a value could not be set, to the model in text, and to the
// operator in why.
type refusal struct {
	rule int
	text string
	why  string
}

const textFailed = "Permission denied: the rewrite rules could not be applied to this call"

// evaluate finds the values that the rules set, from the call as it came.
func (r *Rewrite) evaluate(rules []int) refusal {
	for _, i := range rules {
		rule := &r.o.Rules[i]
		came, err := rule.judge(&r.in)
		switch came {
		case undecided:
			return refusal{i, textFailed, err.Error()}
		case applies:
			if err := r.collect(i, rule); err != nil {
				return refusal{i, textFailed, err.Error()}
			}
		}
	}
	return refusal{}
}

// collect adds the values of rule i to those of the call, but for arguments that
// an earlier rule has set.
func (r *Rewrite) collect(i int, rule *Rule) error {
	for n := range rule.Set {
		s := &rule.Set[n]
		if r.covered(s) {
			continue
		}
		raw, err := r.valueOf(s)
		if err != nil {
			return err
		}
		v := value{i, s, raw}
		if r.encloses(s) {
			r.values = slices.Insert(r.values, 0, v) // and what stands inside of it comes after
			continue
		}
		r.values = append(r.values, v)
	}
	return nil
}

// encloses reports whether an argument that an earlier rule has set stands inside
// of this one.
func (r *Rewrite) encloses(s *Setting) bool {
	return slices.ContainsFunc(r.values, func(v value) bool { return within(v.setting.Path, s.Path) })
}

// covered reports whether an earlier rule has set the argument, or one that it
// stands inside of.
func (r *Rewrite) covered(s *Setting) bool {
	return slices.ContainsFunc(r.values, func(v value) bool { return within(s.Path, v.setting.Path) })
}

var errUnknown = errors.New("the fact it is set to is not known in this session")

// valueOf evaluates a setting. A fact that is not known is not set as an empty
// string, which a server may take for "all"; an expression that means it says so.
func (r *Rewrite) valueOf(s *Setting) ([]byte, error) {
	if err := identified(s.Value, &r.in); err != nil {
		return nil, err
	}
	if path := s.Value.Path(); sessionstate.KnownPath(path) {
		if fact, _ := r.in.Context.Lookup(path); fact.Empty() {
			return nil, errUnknown
		}
	}
	v, err := s.Value.Eval(&r.in)
	return v.JSON, err
}

// edit gives the call the server's name of the tool, and sets its arguments.
func (r *Rewrite) edit(call *middleware.Call, m *wire.Message, t target) refusal {
	if t.rename != none {
		to := r.o.Rules[t.rename].quoted
		if call.Noted() {
			r.note(call, t.rename, "rename", []string{"params", "name"}, m.Name().Raw, to)
		}
		if err := m.Set(to, "params", "name"); err != nil {
			return refusal{t.rename, textFailed, err.Error()}
		}
		call.OnReply(namesInReply(t.name, r.o.Rules[t.rename].Rename))
	}
	for i := range r.values {
		if refused := r.set(call, m, &r.values[i]); refused.text != "" {
			return refused
		}
	}
	return refusal{}
}

// set sets one argument.
func (r *Rewrite) set(call *middleware.Call, m *wire.Message, v *value) refusal {
	s := v.setting
	before := m.Get(s.keys...).Raw
	if bytes.Equal(before, v.raw) {
		return refusal{}
	}
	switch err := m.Set(v.raw, s.keys...); {
	case errors.Is(err, wire.ErrShape):
		outer := strings.Join(s.Path[:len(s.Path)-1], ".")
		return refusal{v.rule, fmt.Sprintf("invalid arguments: %q must be an object, or be left out", outer), err.Error()}
	case err != nil:
		return refusal{v.rule, textFailed, err.Error()}
	}
	if call.Noted() {
		r.note(call, v.rule, r.source(s.Value), s.keys, before, v.raw)
	}
	return refusal{}
}

// source says where a value came from, for people.
func (r *Rewrite) source(p *expression.Program) string {
	if path := p.Path(); sessionstate.KnownPath(path) {
		fact, _ := r.in.Context.Lookup(path)
		return path + " from " + fact.From
	}
	return p.String()
}

// note tells of an edit. Those who call it ask first whether anybody listens.
func (r *Rewrite) note(call *middleware.Call, rule int, source string, path []string, before, after []byte) {
	call.Note(middleware.Note{Layer: layerName, Rule: r.key(rule), Act: middleware.Edited, Path: path, Before: before, After: after, Source: source})
}

// turnDown answers a call whose arguments could not be set.
func (r *Rewrite) turnDown(ctx context.Context, m *wire.Message, view *sessionstate.Context, f refusal) error {
	middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Rule: r.key(f.rule), Act: middleware.Refused, Why: f.why})
	r.o.Log.WarnContext(ctx, "a call was refused, as its arguments could not be set", "rule", r.key(f.rule), "why", f.why)
	return r.answer(ctx, m, wire.RefusalReply(m, f.text, view != nil && view.Modern))
}

// explain makes notes of the rules that did nothing to a call.
func (r *Rewrite) explain(call *middleware.Call, t target) {
	for i := range r.o.Rules {
		rule := &r.o.Rules[i]
		came, err := rule.judge(&r.in)
		act, why := middleware.Skipped, string(came)
		switch {
		case err != nil:
			act, why = middleware.Failed, why+": "+err.Error()
		case i == t.rename, came == applies && len(rule.Set) > 0:
			continue
		case came == applies && rule.Rename != "":
			why = "an earlier rule has renamed the tool"
		case came == applies:
			why = "it changes how the tool is listed, not its calls"
		}
		call.Note(middleware.Note{Layer: layerName, Rule: r.key(i), Act: act, Why: why})
	}
}
