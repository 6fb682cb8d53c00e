package arguments

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A plan is the result of the rules for one tool. The nil plan is that of a tool about which
// nothing is known.
type plan struct {
	tool   *middleware.Tool
	rules  []*rule // that are for it, or may be
	places []place
}

// newPlan reads a tool's schema for the rules.
func (s *Shared) newPlan(t *middleware.Tool) *plan {
	p := &plan{tool: t}
	for _, r := range s.rules {
		named, err := r.names(t.Name)
		if named || err != nil {
			p.rules = append(p.rules, r)
		}
		if named {
			p.places = append(p.places, r.place(t))
		}
	}
	return p
}

// place returns what is known of a rule's argument.
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

// A place is what a tool's schema says of the argument of a rule.
type place struct {
	rule     *rule
	state    state
	why      string // it is unclear: the keyword that attache does not follow
	required bool   // in the object around it
	demanded bool   // the objects around it are required too
	sparse   bool   // the objects around it may be made with nothing else in them
	takes    kinds
	limit    *limit  // of a text; nil if there is none
	verdict  Verdict // of a rule for paths only
}

// A state says whether a schema has an argument.
type state uint8

const (
	unclear state = iota // it could not be found out
	absent
	present
)

// place finds out what the schema of a tool says of the rule's argument. It follows
// plain objects alone. Whatever else may have a say about the objects around the
// argument makes it unclear, unless the schema does not mention its name at all.
func (r *rule) place(t *middleware.Tool) place {
	p := place{rule: r, state: present, demanded: true, sparse: true}
	root := wire.Value{Raw: t.InputSchema}
	at := root
	for i, key := range r.Argument {
		if p.why = otherKeyword(at, i > 0); p.why != "" {
			break
		}
		required := at.Get("required")
		if i > 0 {
			p.demanded = p.demanded && p.required
			p.sparse = p.sparse && requiresOnly(required, key)
		}
		p.required = lists(required, key)
		if at = at.Get("properties", key); !at.Exists() {
			p.state = absent
			return p
		}
	}
	around, outside := references(t.InputSchema, r.Argument[0])
	if p.why == "" && (around || outside) {
		p.why = "$ref"
	}
	if p.why != "" {
		p.state = unclear
		if root.IsObject() && !outside && !wire.Mentions(t.InputSchema, r.last()) {
			p.state = absent
		}
		return p
	}
	p.takes = takes(at, true)
	if p.takes&texts != 0 && r.Mode == Fill {
		if l := newLimit(at, true); l.some() {
			p.limit = &l
		}
	}
	if r.PathOnly {
		p.verdict = Judge(t.Name, t.InputSchema, r.Argument...)
	}
	return p
}

// otherKeyword returns the keyword by which a schema says more of an object than what
// its properties are, "" if there is none. inner says that the object is itself the
// value of a property, and so must be nothing but an object.
func otherKeyword(schema wire.Value, inner bool) string {
	if !schema.IsObject() || inner && !schema.Get("type").Equals("object") {
		return "type"
	}
	for m := range schema.Members() {
		switch key := m.Key.Text(); key {
		case "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
			"dependentRequired", "dependentSchemas", "dependencies", "patternProperties", "propertyNames",
			"minProperties", "maxProperties", "unevaluatedProperties", "const", "enum":
			return key
		}
	}
	return ""
}

var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"\$(?:ref|dynamicRef|recursiveRef)"\s*:\s*"([^"]*)"`)
})

// references reports whether a reference in a schema may lead to the argument of that
// name, or to what is around it, and whether one leads out of the schema.
func references(schema []byte, name string) (around, outside bool) {
	for _, m := range reference().FindAllSubmatch(schema, -1) {
		to := string(m[1])
		if !strings.HasPrefix(to, "#") {
			outside = true
			continue
		}
		property, of := strings.CutPrefix(to, "#/properties/")
		property, _, _ = strings.Cut(property, "/")
		elsewhere := of && property != name && !strings.ContainsAny(property, `%~\`)
		around = around || !elsewhere && !strings.HasPrefix(to, "#/$defs/") && !strings.HasPrefix(to, "#/definitions/")
	}
	return around, outside
}

// lists reports whether an array has the string.
func lists(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if e.Equals(text) {
			return true
		}
	}
	return false
}

// requiresOnly reports whether an array has no string but that one.
func requiresOnly(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if !e.Equals(text) {
			return false
		}
	}
	return true
}

const textOtherType = "the argument does not take any value of that type"

// unfillable returns why a call with these arguments is not filled by the rule, "" if
// it may be: what was a good call without the argument has to be one with it.
func (p *place) unfillable(args wire.Value, v *value) (why string) {
	switch {
	case p.state == absent:
		return "the tool's schema does not have the argument"
	case p.state == unclear && p.why == "":
		return "the server does not list the tool"
	case p.state == unclear:
		return "the tool's schema has " + p.why + " around the argument, which attache does not follow"
	case !p.sparse && !p.rule.around(args):
		return "the object around it is not there, and by the tool's schema is not to be made for it"
	case p.takes&p.rule.gives() == 0:
		return textOtherType
	case p.rule.PathOnly:
		why = p.unsure(v)
	}
	if why == "" && !v.empty() {
		why = p.misfit(v)
	}
	return why
}

// misfit returns why the argument does not take a value, "" if it does.
func (p *place) misfit(v *value) string {
	if !p.takes.has(v) {
		return textOtherType
	}
	if p.limit == nil {
		return ""
	}
	text, ok := v.text()
	if !ok {
		return ""
	}
	// The calls of a session give the same value again.
	if l := p.limit; text != l.text {
		l.text, l.misfit = text, l.refuses(text)
	}
	return p.limit.misfit
}

// unsure returns why a rule for paths only does not fill, "" if it does.
func (p *place) unsure(v *value) string {
	switch {
	case !p.verdict.Path:
		return p.verdict.Why
	case !(p.required && p.demanded) && !v.isAnnounced():
		return "the tool does not require the argument, and the client has not announced a workspace"
	}
	return ""
}

// around reports whether the call has the object that the argument stands in.
func (r *rule) around(args wire.Value) bool {
	return args.Get(r.Argument[:len(r.Argument)-1]...).IsObject()
}

// gives returns the types that the rule's value may have.
func (r *rule) gives() kinds {
	if r.fact != "" {
		return texts
	}
	return anyKind
}

// kinds is a set of JSON types.
type kinds uint8

const (
	texts kinds = 1 << iota
	numbers
	booleans
	objects
	arrays
	nulls
	anyKind = texts | numbers | booleans | objects | arrays | nulls
)

// kindOf are the types by what a JSON Schema calls them. An integer is a number: whether a
// number is a whole one is for the server to see.
var kindOf = map[string]kinds{
	"string": texts, "number": numbers, "integer": numbers, "boolean": booleans, "object": objects, "array": arrays, "null": nulls,
}

// kindAt are the types by the first byte of a value, but for numbers.
var kindAt = map[byte]kinds{'"': texts, 't': booleans, 'f': booleans, '{': objects, '[': arrays, 'n': nulls}

// typesOf returns the types that a schema's keyword type allows.
func typesOf(schema wire.Value) kinds {
	kind := schema.Get("type")
	if !kind.Exists() {
		return anyKind
	}
	set := kindOf[kind.Text()]
	for k := range kind.Elements() {
		set |= kindOf[k.Text()]
	}
	return set
}

// has reports whether a value is of one of the types.
func (k kinds) has(v *value) bool {
	if v.raw == nil {
		return k&texts != 0
	}
	return k&cmp.Or(kindAt[v.raw[0]], numbers) != 0
}

// takes returns the types of which a property can be any value. attache does not choose among
// fixed words, so an enum has none. Alternatives are followed one deep, as far as "a text or
// null" goes.
func takes(property wire.Value, outer bool) kinds {
	if string(property.Raw) == "true" {
		return anyKind
	}
	if !property.IsObject() {
		return 0
	}
	set := typesOf(property)
	for m := range property.Members() {
		switch key := m.Key.Text(); key {
		case "enum", "const", "not", "if", "allOf", "$ref", "$dynamicRef", "$recursiveRef":
			return 0
		case "anyOf", "oneOf":
			if !outer {
				return 0
			}
			set &= taken(m.Value, key == "oneOf")
		}
	}
	return set
}

// taken returns the types of which any value satisfies one of the alternatives, and if
// only one of them may hold, no other.
func taken(alternatives wire.Value, one bool) (set kinds) {
	var seen, twice kinds
	for e := range alternatives.Elements() {
		set |= takes(e, false)
		may := typesOf(e)
		twice |= seen & may
		seen |= may
	}
	if one {
		set &^= twice
	}
	return set
}
