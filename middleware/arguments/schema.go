package arguments

import (
	"bytes"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments/internal/constraint"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A plan holds the rules for one tool. The nil plan is that of an unknown tool.
type plan struct {
	tool   *middleware.Tool
	rules  []*rule // that match the tool, or may match it
	places []place // for the rules that match
}

// newPlan returns the plan for a tool. ownWorkspaces means that its server makes workspaces.
func (s *Shared) newPlan(t *middleware.Tool, ownWorkspaces bool) *plan {
	p := &plan{tool: t}
	for _, r := range s.rules {
		matches, err := r.matches(t.Name)
		if matches || err != nil { // after an error, a rule that enforces has to refuse the call
			p.rules = append(p.rules, r)
		}
		if matches {
			at := r.place(t)
			if ownWorkspaces {
				at.verdict = at.verdict.AmongOwn(r.last())
			}
			p.places = append(p.places, at)
		}
	}
	return p
}

// place returns the place of a rule's argument, an unclear one if the plan does not have it.
func (p *plan) place(r *rule) *place {
	if p != nil {
		for i := range p.places {
			if p.places[i].rule == r {
				return &p.places[i]
			}
		}
	}
	return &place{rule: r}
}

// mayDecode reports whether a call has a string or a list where the tool may take an object around
// the rule's argument. Some servers, among them those of the Python SDK, decode such a string,
// and find the argument in it even if their schema does not declare it.
func (p *plan) mayDecode(r *rule, args wire.Value) bool {
	schema := wire.Value{Raw: p.tool.InputSchema}
	for _, key := range r.Argument[:len(r.Argument)-1] {
		schema, args = schema.Get("properties", key), args.Get(key)
		// The first such value on the path: what is behind it is text for attache.
		if args.Exists() && !args.IsNull() && !args.IsObject() {
			return constraint.Schema{Value: schema}.MayBeObject()
		}
	}
	return false
}

// A place describes the argument of a rule in a tool's schema.
type place struct {
	rule            *rule
	state           state
	why             string // if unclear: the keyword that attache does not follow
	required        bool   // by the object around it
	parentsRequired bool   // the objects around it are required too
	parentsMinimal  bool   // the objects around it require nothing else, so attache may add them
	accepts         constraint.Kinds
	property        constraint.Schema // of the argument
	lists           bool              // the property lists values in enum or const, and the rule may fill one of them
	limit           *constraint.Limit // on strings; nil if there is none
	verdict         Verdict           // of a rule with PathOnly

	checked []byte // the value that misfit checked last, with this result
	result  string
}

// A state reports whether a schema has an argument.
type state uint8

const (
	unclear state = iota // unknown
	absent
	present
)

// place returns the place of the rule's argument in the schema of a tool. It follows only
// plain objects. If another keyword may constrain the objects around the argument, the place
// is unclear, unless the schema does not mention the argument's name at all.
func (r *rule) place(t *middleware.Tool) place {
	p := place{rule: r, state: present, parentsRequired: true, parentsMinimal: true}
	root := wire.Value{Raw: t.InputSchema}
	at := root
	for i, key := range r.Argument {
		if p.why = constraint.OtherKeyword(at, i > 0); p.why != "" {
			break
		}
		required := at.Get("required")
		if i > 0 {
			p.parentsRequired = p.parentsRequired && p.required // p.required is still that of the object around
			p.parentsMinimal = p.parentsMinimal && constraint.ContainsOnly(required, key)
		}
		p.required = constraint.Contains(required, key)
		// An object with additionalProperties may take the argument all the same. That is not followed: a fill is
		// for what the server declares, and a pin overwrites what the call has.
		if at = at.Get("properties", key); !at.Exists() {
			p.state = absent
			return p
		}
	}
	// Through a reference, constraints that are not read here may apply to the argument.
	around, outside := constraint.References(t.InputSchema, r.Argument[0])
	if p.why == "" && (around || outside) {
		p.why = "$ref"
	}
	if p.why != "" {
		p.state = unclear
		// If no part of the schema has the name, no keyword concerns the argument.
		if root.IsObject() && !outside && !wire.Mentions(t.InputSchema, r.last()) {
			p.state = absent
		}
		return p
	}
	p.property = constraint.Schema{Value: at}
	p.accepts = p.property.Accepted()
	// A pin is written whatever the schema says, so only a fill needs to know.
	if p.accepts&constraint.Texts != 0 && r.Mode == Fill {
		if l := p.property.Limit(); l.Restricts() {
			p.limit = &l
		}
	}
	p.lists = r.Mode == Fill && !r.PathOnly && p.property.HasKeyword("enum", "const")
	if r.PathOnly {
		p.verdict = Judge(t.Name, t.InputSchema, r.Argument...)
	}
	return p
}

const (
	textOtherType = "the argument does not take any value of that type"
	textNotListed = "the value is not one of those that the argument's schema lists"
)

// unfillable returns why the rule does not fill a call with these arguments, "" if it does.
// A call that is valid without the argument must stay valid with it.
func (p *place) unfillable(args wire.Value, v *value) (why string) {
	switch {
	case p.state == absent:
		return "the tool's schema does not have the argument"
	// A nil plan has this state, without a reason.
	case p.state == unclear && p.why == "":
		return "the server does not list the tool"
	case p.state == unclear:
		return "the tool's schema has " + p.why + " around the argument, which attache does not follow"
	// attache would have to make that object, without the members that it must have.
	case !p.parentsMinimal && !p.rule.hasParent(args):
		return "the call lacks the object around the argument, which by the tool's schema requires more"
	case !p.acceptsAny() && !p.lists:
		return textOtherType
	case p.rule.PathOnly:
		why = p.notWorkspace(v)
	}
	if why == "" && !v.empty() {
		why = p.misfit(v)
	}
	return why
}

// misfit returns why the argument does not accept a value, which must not be empty, "" if it does.
// The calls of a session have the same value again and again, so it keeps the last result.
func (p *place) misfit(v *value) string {
	if raw := v.json(); !bytes.Equal(raw, p.checked) {
		p.checked, p.result = append(p.checked[:0], raw...), p.check(v)
	}
	return p.result
}

// check is misfit without the memory.
func (p *place) check(v *value) string {
	switch c := v.constrained(); {
	case p.lists && p.property.Lists(&c):
		return ""
	// accepts is 0 if the property itself has enum or const. If only an alternative has, another may accept the value.
	case p.lists && !p.accepts.Has(&c):
		return textNotListed
	case !p.accepts.Has(&c):
		return textOtherType
	case c.IsNumber():
		return p.property.NumberMisfit(&c)
	case c.IsText && p.limit != nil:
		return p.limit.Refuses(c.Text)
	}
	return ""
}

// Misfit returns why the argument of a tool does not accept the value of a rule in a session. It
// returns "" if it does, if the value depends on the call or is unknown, or if the rule forbids. A
// pin does not fit only if attache is sure of it.
func (r Rule) Misfit(t *middleware.Tool, view *sessionstate.Context, server string) string {
	c := newRule(r)
	if c.Mode == Forbid || c.Value.UsesArguments() {
		return ""
	}
	v := c.sessionValue(&expression.Inputs{Context: view, Tool: t.Name, Annotations: t.Annotations, Server: server})
	p := c.place(t)
	switch {
	case p.state != present || v.empty():
		return ""
	case c.Mode == Fill:
		return p.misfit(&v)
	}
	switch is := v.constrained(); {
	case !p.property.Types().Has(&is):
		return textOtherType
	case !p.property.MayAllow(&is):
		return textNotListed
	}
	return ""
}

// acceptsAny reports whether the argument accepts values of a type that the rule's value may have. It
// does not look at limits on strings, and an argument with enum or const accepts none.
func (p *place) acceptsAny() bool {
	kinds := constraint.AnyKind
	if p.rule.fact != "" {
		kinds = constraint.Texts
	}
	return p.accepts&kinds != 0
}

// notWorkspace returns why a rule with PathOnly does not fill, "" if it does.
func (p *place) notWorkspace(v *value) string {
	switch {
	case !p.verdict.Path:
		return p.verdict.Why
	case !(p.required && p.parentsRequired) && !v.isAnnounced():
		return "the tool does not require the argument, and the client has not announced a workspace"
	}
	return ""
}

// hasParent reports whether the call has the object around the argument.
func (r *rule) hasParent(args wire.Value) bool {
	return args.Get(r.Argument[:len(r.Argument)-1]...).IsObject()
}
