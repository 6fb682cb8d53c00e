package arguments

import (
	"context"
	"log/slog"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A toolCall is a call that the layer handles.
type toolCall struct {
	call  *middleware.Call
	m     *wire.Message
	name  string // of the tool, valid as long as m
	view  *sessionstate.Context
	plan  *plan             // set by lookUp; nil if the tool is unknown
	known bool              // set by lookUp: the catalogue has the tool, or a complete list without it
	again bool              // the call has waited and was judged before
	notes []middleware.Note // of this judgement; added to the call when it is final
}

// An intent is a value that a rule wants to write to an argument. A pin without a value, or a fill that may refuse,
// is one too.
type intent struct {
	rule      *rule
	value     value      // empty if the rule has none for this call
	callValue wire.Value // the call's own value, of the frame as it came; no value if the call lacks the argument
}

// judge applies the rules to the call and appends the values to write to out.
func (c *Conn) judge(tc *toolCall, out []intent) ([]intent, *refusal) {
	out, refused := c.eachRule(tc, out)
	// Release the frame and what was decoded of it.
	clear(c.callValues)
	c.callValues = c.callValues[:0]
	if c.inSet {
		c.in.Clear()
		c.inSet = false
	}
	return out, refused
}

// eachRule is judge without the release. The first rule of each slot that applies decides.
func (c *Conn) eachRule(tc *toolCall, out []intent) ([]intent, *refusal) {
	clear(c.decided)
	rules := c.rulesFor(tc)
	for i, r := range rules {
		applies, err := c.applies(tc, r)
		if err != nil { // then the rule does not apply, or the call is refused
			if refused := tc.refuseUndecided(r, err); refused != nil {
				return nil, refused
			}
		}
		if !applies {
			continue
		}
		// The rule has decided even if a fill keeps the value of the call, or a forbidden argument is absent: the rules
		// behind it do not apply in its place.
		c.decided[r.slot] = true
		// The search runs only here, because most calls match no rule.
		if len(c.callValues) == 0 {
			c.find(tc, rules)
		}
		callValue := c.callValues[i]
		if r.Mode == Forbid {
			if refused := c.forbid(tc, r, callValue); refused != nil {
				return nil, refused
			}
			tc.skip(r, "the call does not have the argument")
			continue
		}
		out = append(out, intent{})
		in := &out[len(out)-1]
		in.rule, in.callValue = r, callValue
		c.evaluate(tc, in)
		// The rule's value was needed only to log a difference.
		if r.Mode == Fill && !missing(callValue) {
			c.keepOwn(tc, in)
			out = out[:len(out)-1]
		}
	}
	return out, nil
}

// find sets callValues to the call's values for the rules, in one pass over its arguments. Rules are few and arguments
// may be long, so it is the arguments that are passed over once.
func (c *Conn) find(tc *toolCall, rules []*rule) {
	// Its capacity is that of all rules, and judge has cleared what lies in it.
	if c.callValues = c.callValues[:len(rules)]; tc.m.LacksArgumentNames() {
		return // the names include those of all rules
	}
	left := len(rules)
	// No two members of a plain frame have one name, so the search ends when all are found.
	for m := range tc.m.Arguments().Members() {
		for i, r := range rules {
			// Several rules may be about one argument, or about members of one.
			if !c.callValues[i].Exists() && m.Key.Equals(r.Argument[0]) {
				c.callValues[i] = m.Value
				left--
			}
		}
		if left == 0 {
			break
		}
	}
	for i, r := range rules {
		if len(r.Argument) > 1 {
			c.callValues[i] = c.callValues[i].Get(r.Argument[1:]...)
		}
	}
}

// forbid returns the refusal of a forbid rule, nil if the call is allowed. If the path to the
// argument leads through a string or a list, which some servers decode, the call is refused
// unless the tool takes no object there.
func (c *Conn) forbid(tc *toolCall, r *rule, callValue wire.Value) *refusal {
	if callValue.Exists() {
		return r.refusal("the call has the argument, which is forbidden",
			"is not the model's to choose: it is forbidden here. Leave it out and call again.")
	}
	// memberToSet fails if a value on the path is neither an object nor null. Otherwise only objects lead to the
	// argument, and they do not have it.
	if _, _, err := r.memberToSet(tc.m.Arguments(), nil); err == nil {
		return nil
	}
	if c.lookUp(tc); tc.known && tc.plan.place(r).state == absent && !tc.plan.mayDecode(r, tc.m.Arguments()) {
		return nil
	}
	return r.refusal("the value around the argument, which is forbidden, is not an object",
		"is not the model's to choose: it is forbidden here, and what is around it has to be an object. Give an object where one belongs, or leave it out, and call again.")
}

// manyRules is the number of rules for which looking up the tool is faster than matching its
// name with all patterns.
const manyRules = 4

// rulesFor returns the rules that may apply to the call: those of the tool's plan if it has one. A
// listener that wants explanations hears of all rules.
func (c *Conn) rulesFor(tc *toolCall) []*rule {
	if len(c.rules) < manyRules || tc.call.Explained() {
		return c.rules
	}
	if c.lookUp(tc); tc.plan == nil {
		return c.rules
	}
	return tc.plan.rules
}

// missing reports whether a fill rule treats an argument as missing.
func missing(callValue wire.Value) bool {
	// Models write null or "" for what they do not know.
	return !callValue.Exists() || callValue.IsNull() || string(callValue.Raw) == `""`
}

// applies reports whether the rule applies to this call. It returns an error if this cannot be
// decided.
func (c *Conn) applies(tc *toolCall, r *rule) (bool, error) {
	named, err := r.matches(tc.name)
	switch {
	case err != nil:
		return false, err
	case !named:
		tc.skip(r, "it is for other tools")
		return false, nil
	// After the patterns and before the condition: an error of a condition must not refuse a call for which the
	// rule does not count.
	case c.decided[r.slot]:
		tc.skip(r, "another rule for the same argument counts")
		return false, nil
	case r.When == nil:
		return true, nil
	// The condition would not hold, and the rule would not bind, as long as the look-up of the principal fails.
	case r.enforces() && r.When.Identified(tc.view) != nil:
		return false, expression.ErrUnidentified
	}
	holds, err := r.When.Holds(c.inputs(tc))
	if err == nil && !holds {
		tc.skip(r, "its condition does not hold")
	}
	return holds, err
}

// refuseUndecided returns the refusal of a rule for which it cannot be decided whether it
// applies, nil if the rule only fills.
func (tc *toolCall) refuseUndecided(r *rule, err error) *refusal {
	if r.enforces() {
		return &refusal{r, "it could not be decided: " + err.Error(), textUndecided}
	}
	if tc.call.Noted() {
		tc.note(middleware.Note{Rule: r.Name, Act: middleware.Failed, Why: "it could not be decided: " + err.Error(), Path: r.keys})
	}
	return nil
}

// keepOwn logs that the call's own value was kept, if it differs from the rule's. The built-in rule
// has no value for an argument that it does not fill, such as the name of a workspace.
func (c *Conn) keepOwn(tc *toolCall, in *intent) {
	if in.rule.PathOnly {
		if c.lookUp(tc); tc.plan != nil {
			if why := tc.plan.place(in.rule).unfillable(tc.m.Arguments(), &in.value); why != "" {
				tc.skip(in.rule, why)
				return
			}
		}
	}
	if in.value.empty() || in.value.equals(in.callValue) {
		tc.skip(in.rule, "the call has a value of its own")
		return
	}
	if !tc.again {
		c.logDifference(tc, in, "the call's own value was kept")
	}
	if tc.call.Noted() {
		tc.note(middleware.Note{Rule: in.rule.Name, Act: middleware.Kept, Why: "the call's own value was kept",
			Path: in.rule.keys, Before: in.callValue.Raw, After: in.value.json(), Source: in.source()})
	}
}

// filterKnown removes the intents that the tool's schema does not allow. It removes a pin only if
// neither the schema nor the call has the argument, not even in a string or a list.
func (c *Conn) filterKnown(tc *toolCall, intents []intent) []intent {
	allowed := intents[:0]
	for i := range intents {
		in := &intents[i]
		p := tc.plan.place(in.rule)
		if in.rule.Mode != Pin || p.state == absent && !in.callValue.Exists() && !tc.plan.mayDecode(in.rule, tc.m.Arguments()) {
			if why := p.unfillable(tc.m.Arguments(), &in.value); why != "" {
				c.explainUnfilled(tc, p, in, why)
				continue
			}
		}
		allowed = append(allowed, *in)
	}
	return allowed
}

// explainUnfilled notes and logs why an argument is not filled.
func (c *Conn) explainUnfilled(tc *toolCall, p *place, in *intent, why string) {
	tc.skip(p.rule, why)
	switch {
	case p.state == absent || p.state == unclear && p.why == "":
	case p.state == unclear && !p.rule.PathOnly:
		c.logUnclear(tc.name, p.rule, p.why)
	case p.rule.PathOnly && !p.verdict.Path:
		c.logPassedOver(tc.name, p)
	case p.state == present && !in.value.empty() && p.misfit(&in.value) != "":
		c.logMisfit(tc, p, in)
	}
}

// filterUnknown removes the intents that are not carried out while the schema is unknown: all
// fills, except for one without a value that the operator made required, so that it refuses.
func (tc *toolCall) filterUnknown(intents []intent) []intent {
	return slices.DeleteFunc(intents, func(in intent) bool {
		if in.rule.Mode == Pin || in.value.empty() && in.rule.Required != nil && *in.rule.Required {
			return false
		}
		tc.skip(in.rule, "the tool's schema is not known")
		return true
	})
}

// refuseMissing returns the refusal of the first rule that needs a value but has none.
func (tc *toolCall) refuseMissing(intents []intent) *refusal {
	for i := range intents {
		in := &intents[i]
		if !in.value.empty() {
			continue
		}
		if in.rule.Mode == Pin {
			return pinRefusal(in.rule)
		}
		p := tc.plan.place(in.rule)
		// A required member of an optional object is not missing if the call does not have the object.
		required := p.required && (p.parentsRequired || in.rule.hasParent(tc.m.Arguments()))
		if in.rule.Required != nil {
			required = *in.rule.Required
		}
		if required {
			return &refusal{in.rule, "there is no value, and the argument is required", missingText(in.rule)}
		}
		tc.skip(in.rule, "the session has no value for it")
	}
	return nil
}

// skip notes a rule that did nothing, if a listener wants such notes.
func (tc *toolCall) skip(r *rule, why string) {
	if tc.call.Explained() {
		tc.note(middleware.Note{Rule: r.Name, Act: middleware.Skipped, Why: why, Path: r.keys})
	}
}

func (tc *toolCall) note(n middleware.Note) {
	n.Layer = layerName
	tc.notes = append(tc.notes, n)
}

// addNotes adds the notes to the call. It is called when the decision is final.
func (tc *toolCall) addNotes() {
	for i := range tc.notes {
		tc.call.Note(tc.notes[i])
	}
	// addNotes is called more than once for a call: write adds notes of its own between them.
	tc.notes = nil
}

// evaluate sets the value of an intent for this call. If it cannot be computed, the value stays
// empty.
func (c *Conn) evaluate(tc *toolCall, in *intent) {
	r := in.rule
	if r.fact != "" {
		in.value.member = r.read(tc.view, &c.facts[r.index])
		return
	}
	// An error leaves raw nil: a fill then does nothing, and a pin refuses for want of a value.
	raw, err := r.compute(c.inputs(tc))
	if err != nil {
		c.once(event{kind: "uncomputed", rule: r}, slog.LevelWarn, "the value of an argument could not be computed",
			"argument", r.path, "value", r.Value.String(), "err", err)
	}
	in.value.raw = raw
}

// inputs returns the inputs of expressions. They are set once for each judgement, and only if a
// rule has an expression.
func (c *Conn) inputs(tc *toolCall) *expression.Inputs {
	if !c.inSet {
		c.inSet = true
		c.in.Context, c.in.Tool, c.in.Server = tc.view, tc.name, c.o.Server
		c.in.Arguments = tc.m.Arguments().Raw
		if tc.plan != nil {
			c.in.Annotations = tc.plan.tool.Annotations
		}
	}
	return &c.in
}

func (c *Conn) logDifference(tc *toolCall, in *intent, what string) {
	if c.log.Enabled(context.Background(), slog.LevelInfo) { // avoid building the texts
		c.log.InfoContext(tc.call.LogContext(), what, "tool", middleware.Clip(tc.name), "argument", in.rule.path,
			"call_value", c.shown(in), "rule_value", in.value.String(), "rule_source", in.origin())
	}
}

// shown returns the call's own value for a log line, without secrets.
func (c *Conn) shown(in *intent) string {
	v := in.callValue
	// A model may write a secret that it has read into an argument.
	if c.o.Scrub != nil {
		v.Raw = c.o.Scrub(in.rule.Argument, v.Raw)
	}
	text := string(v.Raw)
	if v.IsString() {
		text = v.Text()
	}
	return middleware.Clip(text)
}

// logMisfit logs, once for each tool and rule, that an argument does not accept the rule's value.
func (c *Conn) logMisfit(tc *toolCall, p *place, in *intent) {
	c.once(event{"misfit", tc.name, p.rule}, slog.LevelInfo, "an argument is not filled, because its schema does not take the rule's value",
		"tool", middleware.Clip(tc.name), "argument", p.rule.path, "why", p.misfit(&in.value), "rule_source", in.origin())
}
