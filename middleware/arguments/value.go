package arguments

import (
	"bytes"
	"fmt"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A value is what a rule's value comes to for one call: a fact, or JSON that was
// computed.
type value struct {
	known *reading // of a fact that is there; nil if there is none
	raw   []byte
}

// A reading is the fact that is a rule's value, as a view has it. A view never
// changes, so that the calls of one session share a reading.
type reading struct {
	view   *sessionstate.Context
	fact   sessionstate.Fact
	member []byte // the argument as it is added behind others: ,"workspace":"/src/shop"
	start  int    // of the value in member
}

// read returns the reading of r's fact in a view, nil if the fact is not known. It
// is valid until the next.
func (r *rule) read(view *sessionstate.Context) *reading {
	k := &r.known
	if k.view != view || k.member == nil {
		k.view = view
		k.fact, _ = view.Lookup(r.fact)
		k.member = r.appendName(k.member[:0])
		k.start = len(k.member)
		k.member = wire.AppendQuote(k.member, k.fact.Value)
	}
	if k.fact.Empty() {
		return nil
	}
	return k
}

// appendName appends what stands before the value of r's argument that is added
// behind others.
func (r *rule) appendName(dst []byte) []byte {
	return append(wire.AppendQuote(append(dst, ','), r.last()), ':')
}

// fact returns the fact that the value is, an empty one if it is none.
func (v *value) fact() sessionstate.Fact {
	if v.known == nil {
		return sessionstate.Fact{}
	}
	return v.known.fact
}

// empty reports whether there is no value.
func (v *value) empty() bool {
	if v.raw == nil {
		return v.known == nil
	}
	switch string(v.raw) {
	case "null", `""`, "[]":
		return true
	}
	return false
}

// json returns a value that is not empty as JSON.
func (v *value) json() []byte {
	if v.raw != nil {
		return v.raw
	}
	return v.known.member[v.known.start:]
}

// is reports whether given is this value.
func (v *value) is(given wire.Value) bool {
	if v.raw != nil {
		return bytes.Equal(v.raw, given.Raw)
	}
	return given.Equals(v.fact().Value)
}

// String returns the value as a log line takes it.
func (v *value) String() string {
	if v.raw != nil {
		return cut(string(v.raw))
	}
	return cut(v.fact().Value)
}

// source says where the value of an intent comes from, for notes.
func (in *intent) source() string {
	if in.value.fact().Empty() {
		return in.rule.Value.String()
	}
	r := in.rule
	if origin := in.origin(); r.source == "" || r.origin != origin {
		r.origin, r.source = origin, r.fact+" from "+origin
	}
	return r.source
}

// origin says who the value of an intent is from.
func (in *intent) origin() string {
	switch fact := in.value.fact(); {
	case fact.Empty():
		return in.rule.Value.String()
	case fact.From == "":
		return fact.Source.String()
	default:
		return fact.From
	}
}

// evaluate finds out the value of an intent for this call. One that cannot be
// computed is none.
func (a *Arguments) evaluate(c *calling, in *intent) {
	r := in.rule
	if r.fact != "" {
		in.value.known = r.read(c.view)
		return
	}
	if r.Value == nil || r.Value.ReadsPrincipal() && (c.view == nil || c.view.Principal == nil) {
		return
	}
	v, err := r.Value.Eval(a.inputs(c))
	switch {
	case err != nil && !r.warned:
		r.warned = true
		a.o.Log.WarnContext(c.call.LogContext(), "the value of an argument could not be computed", "argument", r.path, "value", r.Value.String(), "err", err)
	case err != nil:
	case r.Value.Type() == expression.String:
		in.value.raw = wire.Quote(v.Text)
	default:
		in.value.raw = v.JSON
	}
}

// inputs returns what expressions read of the call. They are made once for each
// judgement, and only if a rule has an expression.
func (a *Arguments) inputs(c *calling) *expression.Inputs {
	if !a.reading {
		a.reading = true
		a.in.Context, a.in.Tool, a.in.Server = c.view, c.name, a.o.Server
		a.in.Arguments = c.m.Arguments().Raw
		if c.tool != nil {
			a.in.Annotations = c.tool.annotations
		}
	}
	return &a.in
}

const layerName = "arguments"

// The texts of refusals give the model no name of a tool: the layers outside may
// have shown it another.
const textUndecided = "Permission denied: the rules for the arguments of this tool could not be applied to this call"

func forbidden(r *rule) *refusal {
	return &refusal{r, "the call has the argument, which is forbidden",
		fmt.Sprintf("The argument %q is not the model's to choose: it is forbidden here. Leave it out and call again.", r.path)}
}

// hiddenWay is what comes of a call that may have the argument where nobody can see
// it.
func hiddenWay(r *rule) *refusal {
	return &refusal{r, "what stands around the argument, which is forbidden, is no object",
		fmt.Sprintf("The argument %q is not the model's to choose: it is forbidden here, and what is around it has to be an object. Give an object where one belongs, or leave it out, and call again.", r.path)}
}

// unknownPin is what a pin without a value has against a call.
func unknownPin(in *intent) *refusal {
	how := "its value could not be determined"
	if in.rule.fact != "" {
		how = "it is taken from " + in.rule.fact + ", which is not known for this session"
	}
	return &refusal{in.rule, "there is no value to pin the argument to",
		fmt.Sprintf("The argument %q is not the model's to choose: %s, so the call was not sent. Ask the user to %s.",
			in.rule.path, how, remedy(in.rule))}
}

// unwritable is what comes of a value that a call has no place for.
func unwritable(r *rule, err error) *refusal {
	return &refusal{r, "the value could not be written: " + err.Error(),
		fmt.Sprintf("The argument %q is not the model's to choose, and this call has no place to set it: leave it and what is around it out, or give an object where one belongs, and call again.", r.path)}
}

// remedy says what a person does about a value that is missing.
func remedy(r *rule) string {
	switch {
	case r.fact == workspacePath:
		return "set the session's workspace (--workspace or ATTACHE_WORKSPACE for attache, or _meta of the client)"
	case r.Value.ReadsPrincipal():
		return "check the credential that attache was given for this session"
	case r.fact != "":
		return "set " + r.fact + " for the session"
	}
	return "look at the configuration and the log of attache"
}

// missingText tells the model what to do about an argument that is required.
func missingText(tool string, r *rule) string {
	return fmt.Sprintf("missing %s: the tool %s needs the argument %q and the session has no value for it. Give it in the call, or ask the user to %s.",
		r.path, tool, r.path, remedy(r))
}
