package arguments

import (
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A toolCall is one call on its way through the layer.
type toolCall struct {
	call  *middleware.Call
	m     *wire.Message
	name  string // of the tool, as the message has it
	view  *sessionstate.Context
	plan  *plan             // as far as the tool was looked up; nil for one nothing is known of
	known bool              // of the tool, as far as anything can be
	again bool              // it has waited, and was judged before
	notes []middleware.Note // of this judgement; told when it is final
}

// An intent is a value that a rule is about to give to an argument.
type intent struct {
	rule      *rule
	value     value
	callValue wire.Value // what the call has
}

// judge lets each rule decide about the call, and appends the values to send to out.
func (c *Conn) judge(tc *toolCall, out []intent) ([]intent, *refusal) {
	out, no := c.eachRule(tc, out)
	// The frame, and what was decoded of it, are not kept.
	clear(c.callValues)
	c.callValues = c.callValues[:0]
	if c.reading {
		c.in.Clear()
		c.reading = false
	}
	return out, no
}

func (c *Conn) eachRule(tc *toolCall, out []intent) ([]intent, *refusal) {
	clear(c.settled)
	rules := c.rulesFor(tc)
	for i, r := range rules {
		applies, err := c.applies(tc, r)
		if err != nil {
			if no := tc.refuseUndecided(r, err); no != nil {
				return nil, no
			}
		}
		if !applies {
			continue
		}
		c.settled[r.slot] = true
		if len(c.callValues) == 0 {
			c.find(tc, rules)
		}
		callValue := c.callValues[i]
		if r.Mode == Forbid {
			if no := c.forbid(tc, r, callValue); no != nil {
				return nil, no
			}
			tc.skip(r, "the call does not have the argument")
			continue
		}
		out = append(out, intent{})
		in := &out[len(out)-1]
		in.rule, in.callValue = r, callValue
		c.evaluate(tc, in)
		if r.Mode == Fill && !missing(callValue) {
			c.keep(tc, in)
			out = out[:len(out)-1]
		}
	}
	return out, nil
}

// find finds what the call has for each of the rules, in one pass over its
// arguments.
func (c *Conn) find(tc *toolCall, rules []*rule) {
	if c.callValues = c.callValues[:len(rules)]; tc.m.LacksArgumentNames() {
		return // those names include those of all rules
	}
	left := len(rules)
	for m := range tc.m.Arguments().Members() {
		for i, r := range rules {
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

// forbid returns the refusal of a rule that forbids, if it refuses the call. Where the path to
// the argument leads through a text or a list, some servers look into that too, so the call is
// refused unless the tool has no such argument.
func (c *Conn) forbid(tc *toolCall, r *rule, callValue wire.Value) *refusal {
	if callValue.Exists() {
		return argumentRefusal(r)
	}
	if _, _, err := r.spot(tc.m.Arguments(), nil); err == nil {
		return nil
	}
	if c.lookUp(tc); tc.known && tc.plan.place(r).state == absent {
		return nil
	}
	return shapeRefusal(r)
}

// manyRules is the number of rules from which on looking a tool up costs less than matching its
// name with all patterns.
const manyRules = 4

// rulesFor returns the rules that may be for the call: of a tool that was listed,
// those that were found to be for it then.
func (c *Conn) rulesFor(tc *toolCall) []*rule {
	if len(c.rules) < manyRules || tc.call.Explained() {
		return c.rules
	}
	if c.lookUp(tc); tc.plan == nil {
		return c.rules
	}
	return tc.plan.rules
}

// missing reports whether an argument counts as missing, for a rule that fills.
func missing(callValue wire.Value) bool {
	return !callValue.Exists() || callValue.IsNull() || string(callValue.Raw) == `""`
}

// applies reports whether the rule is for this call. With an error that could not be
// decided.
func (c *Conn) applies(tc *toolCall, r *rule) (bool, error) {
	named, err := r.names(tc.name)
	switch {
	case err != nil:
		return false, err
	case !named:
		tc.skip(r, "it is for other tools")
		return false, nil
	case c.settled[r.slot]:
		tc.skip(r, "another rule for the same argument counts")
		return false, nil
	case r.When == nil:
		return true, nil
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
// applies: none, if the rule only fills.
func (tc *toolCall) refuseUndecided(r *rule, err error) *refusal {
	if r.enforces() {
		return &refusal{r, "it could not be decided: " + err.Error(), textUndecided}
	}
	if tc.call.Noted() {
		tc.note(middleware.Note{Rule: r.Name, Act: middleware.Failed, Why: "it could not be decided: " + err.Error(), Path: r.keys})
	}
	return nil
}

// keep leaves the call's own value in place, and logs a difference.
func (c *Conn) keep(tc *toolCall, in *intent) {
	if in.value.empty() || in.value.is(in.callValue) {
		tc.skip(in.rule, "the call has a value of its own")
		return
	}
	if !tc.again {
		c.differ(tc, in, "the call's own value was kept")
	}
	if tc.call.Noted() {
		tc.note(middleware.Note{Rule: in.rule.Name, Act: middleware.Kept, Why: "the call's own value was kept",
			Path: in.rule.keys, Before: in.callValue.Raw, After: in.value.json(), Source: in.source()})
	}
}

// admit returns the intents the tool's schema has a place for. A pin stays also
// where the schema is not known to lack the argument, and where the call brings it.
func (c *Conn) admit(tc *toolCall, intents []intent) []intent {
	admitted := intents[:0]
	for i := range intents {
		in := &intents[i]
		p := tc.plan.place(in.rule)
		if in.rule.Mode != Pin || p.state == absent && !in.callValue.Exists() {
			if why := p.unfillable(tc.m.Arguments(), &in.value); why != "" {
				c.passOver(tc, p, in, why)
				continue
			}
		}
		admitted = append(admitted, *in)
	}
	return admitted
}

// passOver notes why an argument is not filled.
func (c *Conn) passOver(tc *toolCall, p *place, in *intent, why string) {
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

// unknown returns what is left of the intents for a tool whose schema is not known:
// pins, and of what is to be filled only what the operator said is required and is
// missing.
func (tc *toolCall) unknown(intents []intent) []intent {
	return slices.DeleteFunc(intents, func(in intent) bool {
		if in.rule.Mode == Pin || in.value.empty() && in.rule.Required != nil && *in.rule.Required {
			return false
		}
		tc.skip(in.rule, "the tool's schema is not known")
		return true
	})
}

// unmet returns the refusal of the first rule that must have a value and has none.
func (tc *toolCall) unmet(intents []intent) *refusal {
	for i := range intents {
		in := &intents[i]
		if !in.value.empty() {
			continue
		}
		if in.rule.Mode == Pin {
			return pinRefusal(in)
		}
		p := tc.plan.place(in.rule)
		required := p.required && (p.demanded || in.rule.around(tc.m.Arguments()))
		if in.rule.Required != nil {
			required = *in.rule.Required
		}
		if required {
			return &refusal{in.rule, "there is no value, and the argument is required", missingText(tc.name, in.rule)}
		}
		tc.skip(in.rule, "the session has no value for it")
	}
	return nil
}

// skip notes a rule that did nothing, if somebody wants to know.
func (tc *toolCall) skip(r *rule, why string) {
	if tc.call.Explained() {
		tc.note(middleware.Note{Rule: r.Name, Act: middleware.Skipped, Why: why, Path: r.keys})
	}
}

func (tc *toolCall) note(n middleware.Note) {
	n.Layer = layerName
	tc.notes = append(tc.notes, n)
}

// addNotes adds the notes to the call, after the decision is final.
func (tc *toolCall) addNotes() {
	for i := range tc.notes {
		tc.call.Note(tc.notes[i])
	}
	tc.notes = nil
}
