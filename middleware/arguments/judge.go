package arguments

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A calling is one call on its way through the layer.
type calling struct {
	call  *middleware.Call
	m     *wire.Message
	name  string // of the tool, as the message has it
	view  *sessionstate.Context
	tool  *tool             // as far as it was looked up; nil for one nothing is known of
	known bool              // of the tool, as far as anything can be
	again bool              // it has waited, and was judged before
	notes []middleware.Note // of this judgement; told when it is final
}

// An intent is a value that a rule is about to give to an argument.
type intent struct {
	rule  *rule
	value value
	given wire.Value // what the call has
}

// A refusal is what a rule has against a call.
type refusal struct {
	rule *rule
	why  string // for people
	text string // for the model
}

// judge has each rule look at the call, and appends what is to be given to out.
func (a *Arguments) judge(c *calling, out []intent) ([]intent, *refusal) {
	out, no := a.eachRule(c, out)
	// The frame, and what was decoded of it, are not kept.
	clear(a.given)
	a.given = a.given[:0]
	if a.reading {
		a.in.Clear()
		a.reading = false
	}
	return out, no
}

func (a *Arguments) eachRule(c *calling, out []intent) ([]intent, *refusal) {
	clear(a.settled)
	rules := a.rulesFor(c)
	for i, r := range rules {
		applies, err := a.applies(c, r)
		if err != nil {
			if no := c.undecided(r, err); no != nil {
				return nil, no
			}
		}
		if !applies {
			continue
		}
		a.settled[r.slot] = true
		if len(a.given) == 0 {
			a.find(c, rules)
		}
		given := a.given[i]
		if r.Mode == Forbid {
			if no := a.forbid(c, r, given); no != nil {
				return nil, no
			}
			c.skip(r, "the call does not have the argument")
			continue
		}
		out = append(out, intent{})
		in := &out[len(out)-1]
		in.rule, in.given = r, given
		a.evaluate(c, in)
		if r.Mode == Fill && !missing(given) {
			a.keep(c, in)
			out = out[:len(out)-1]
		}
	}
	return out, nil
}

// find finds what the call has for each of the rules, in one pass over its
// arguments.
func (a *Arguments) find(c *calling, rules []*rule) {
	a.given = a.given[:len(rules)]
	left := len(rules)
	for m := range c.m.Arguments().Members() {
		for i, r := range rules {
			if !a.given[i].Exists() && m.Key.Equals(r.Argument[0]) {
				a.given[i] = m.Value
				left--
			}
		}
		if left == 0 {
			break
		}
	}
	for i, r := range rules {
		if len(r.Argument) > 1 {
			a.given[i] = a.given[i].Get(r.Argument[1:]...)
		}
	}
}

// forbid returns what a rule that forbids has against the call. Where the way to the
// argument leads through a text or a list, some servers look into it all the same,
// unless the tool has no such argument.
func (a *Arguments) forbid(c *calling, r *rule, given wire.Value) *refusal {
	if given.Exists() {
		return forbidden(r)
	}
	if _, _, err := r.spot(c.m.Arguments(), nil); err == nil {
		return nil
	}
	if a.lookUp(c); c.known && c.tool.place(r).state == absent {
		return nil
	}
	return hiddenWay(r)
}

// manyRules is how many it takes for looking a tool up to cost less than matching
// its name with the patterns of each.
const manyRules = 4

// rulesFor returns the rules that may be for the call: of a tool that was listed,
// those that were found to be for it then.
func (a *Arguments) rulesFor(c *calling) []*rule {
	if len(a.all) < manyRules || c.call.Explained() {
		return a.all
	}
	if a.lookUp(c); c.tool == nil {
		return a.all
	}
	return c.tool.rules
}

// missing reports whether an argument counts as not given, for a rule that fills.
func missing(given wire.Value) bool {
	return !given.Exists() || given.IsNull() || string(given.Raw) == `""`
}

// applies reports whether the rule is for this call; an error says that nobody can
// tell.
func (a *Arguments) applies(c *calling, r *rule) (bool, error) {
	named, err := r.names(c.name)
	switch {
	case err != nil:
		return false, err
	case !named:
		c.skip(r, "it is for other tools")
		return false, nil
	case a.settled[r.slot]:
		c.skip(r, "another rule for the same argument counts")
		return false, nil
	case r.When == nil:
		return true, nil
	case r.enforces() && c.view != nil && c.view.Unidentified != nil && r.When.UsesPrincipal():
		return false, errLookup
	}
	holds, err := r.When.Holds(a.inputs(c))
	if err == nil && !holds {
		c.skip(r, "its condition does not hold")
	}
	return holds, err
}

// errLookup: a condition that depends on the principal says nothing while a
// credential could not be turned into one.
var errLookup = errors.New("the caller's identity could not be looked up")

// undecided is what comes of a rule of which nobody can tell whether it applies.
func (c *calling) undecided(r *rule, err error) *refusal {
	if r.enforces() {
		return &refusal{r, "it could not be decided: " + err.Error(), textUndecided}
	}
	if c.call.Noted() {
		c.note(middleware.Note{Rule: r.Name, Act: middleware.Failed, Why: "it could not be decided: " + err.Error(), Path: r.keys})
	}
	return nil
}

// keep leaves the call's own value in place, and tells of a difference.
func (a *Arguments) keep(c *calling, in *intent) {
	if in.value.empty() || in.value.is(in.given) {
		c.skip(in.rule, "the call has a value of its own")
		return
	}
	if !c.again {
		a.differ(c, in, "the call's own value was kept")
	}
	if c.call.Noted() {
		c.note(middleware.Note{Rule: in.rule.Name, Act: middleware.Kept, Why: "the call's own value was kept",
			Path: in.rule.keys, Before: in.given.Raw, After: in.value.json(), Source: in.source()})
	}
}

// differ logs that the call's value is not the rule's, and where each is from.
func (a *Arguments) differ(c *calling, in *intent, what string) {
	if a.o.Log.Enabled(context.Background(), slog.LevelInfo) { // the texts cost something
		a.o.Log.InfoContext(c.call.LogContext(), what, "tool", cut(c.name), "argument", in.rule.path,
			"given", a.shown(in), "given_by", "tools/call", "session", in.value.String(), "session_by", in.origin())
	}
}

// shown returns the call's own value as a log line takes it.
func (a *Arguments) shown(in *intent) string {
	v := in.given
	if a.o.Scrub != nil {
		v = wire.Value{Raw: a.o.Scrub(in.rule.Argument, v.Raw)}
	}
	text := string(v.Raw)
	if v.IsString() {
		text = v.Text()
	}
	return cut(text)
}

func cut(text string) string {
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}

// admit returns the intents the tool's schema has a place for. A pin stays also
// where the schema is not known to lack the argument, and where the call brings it.
func (c *calling) admit(intents []intent) []intent {
	admitted := intents[:0]
	for i := range intents {
		if c.admits(&intents[i]) {
			admitted = append(admitted, intents[i])
		}
	}
	return admitted
}

func (c *calling) admits(in *intent) bool {
	p := c.tool.place(in.rule)
	if in.rule.Mode == Pin && (p.state != absent || in.given.Exists()) {
		return true
	}
	why := p.unfillable(c.m.Arguments())
	if why == "" && !in.value.empty() && !p.takes.has(in.value) {
		why = textOtherType
	}
	if why != "" {
		c.skip(in.rule, why)
	}
	return why == ""
}

// unknown returns what is left of the intents for a tool whose schema is not known:
// pins, and of what is to be filled only what the operator said is required and is
// missing.
func (c *calling) unknown(intents []intent) []intent {
	return slices.DeleteFunc(intents, func(in intent) bool {
		if in.rule.Mode == Pin || in.value.empty() && in.rule.Required != nil && *in.rule.Required {
			return false
		}
		c.skip(in.rule, "the tool's schema is not known")
		return true
	})
}

// unmet returns what the first rule refuses that has no value, and must have one.
func (c *calling) unmet(intents []intent) *refusal {
	for i := range intents {
		in := &intents[i]
		if !in.value.empty() {
			continue
		}
		if in.rule.Mode == Pin {
			return unknownPin(in)
		}
		p := c.tool.place(in.rule)
		required := p.required && (p.demanded || in.rule.around(c.m.Arguments()))
		if in.rule.Required != nil {
			required = *in.rule.Required
		}
		if required {
			return &refusal{in.rule, "there is no value, and the argument is required", missingText(c.name, in.rule)}
		}
		c.skip(in.rule, "the session has no value for it")
	}
	return nil
}

// worthAsking reports whether a list would decide anything: there is a value to
// give, or one that must not be missing.
func worthAsking(intents []intent) bool {
	for i := range intents {
		in := &intents[i]
		if !in.value.empty() || in.rule.Mode == Pin || in.rule.Required != nil && *in.rule.Required {
			return true
		}
	}
	return false
}

// refuse answers the call in place of the upstream. A notification is dropped.
func (a *Arguments) refuse(ctx context.Context, c *calling, no *refusal) error {
	session, _ := c.view.Lookup("session.id")
	a.o.Log.InfoContext(ctx, "a call was refused", "tool", cut(c.name), "argument", no.rule.path, "why", no.why, "session", session.Value)
	c.tell()
	if c.call.Noted() {
		c.call.Note(middleware.Note{Layer: layerName, Rule: no.rule.Name, Act: middleware.Refused, Why: no.why, Path: no.rule.keys})
	}
	if c.m.Kind() != wire.Request {
		return nil
	}
	return c.call.Answer(ctx, wire.RefusalReply(c.m, no.text, c.view != nil && c.view.Modern))
}

// skip notes a rule that did nothing, for those who want to know.
func (c *calling) skip(r *rule, why string) {
	if c.call.Explained() {
		c.note(middleware.Note{Rule: r.Name, Act: middleware.Skipped, Why: why, Path: r.keys})
	}
}

func (c *calling) note(n middleware.Note) {
	n.Layer = layerName
	c.notes = append(c.notes, n)
}

// tell tells the notes: the judgement is final.
func (c *calling) tell() {
	for i := range c.notes {
		c.call.Note(c.notes[i])
	}
	c.notes = nil
}
