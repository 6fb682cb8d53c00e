package arguments

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A plan holds the rules for one tool. The nil plan is that of an unknown tool.
type plan struct {
	tool   *middleware.Tool
	rules  []*rule // that match the tool, or may match it
	places []place // for the rules that match
}

func (s *Shared) newPlan(t *middleware.Tool) *plan {
	p := &plan{tool: t}
	for _, r := range s.rules {
		matches, err := r.matches(t.Name)
		if matches || err != nil { // after an error, a rule that enforces has to refuse the call
			p.rules = append(p.rules, r)
		}
		if matches {
			p.places = append(p.places, r.place(t))
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
		if args.Exists() && !args.IsNull() && !args.IsObject() {
			return mayBeObject(schema, true)
		}
	}
	return false
}

// mayBeObject reports whether a schema may accept an object. Alternatives are followed only if
// outer is set.
func mayBeObject(schema wire.Value, outer bool) bool {
	if typesOf(schema)&objects == 0 {
		return false
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if alternatives := schema.Get(key); outer && alternatives.IsArray() {
			accepted := false
			for e := range alternatives.Elements() {
				accepted = accepted || mayBeObject(e, false)
			}
			return accepted
		}
	}
	return true
}

// A place describes the argument of a rule in a tool's schema.
type place struct {
	rule            *rule
	state           state
	why             string // if unclear: the keyword that attache does not follow
	required        bool   // by the object around it
	parentsRequired bool   // the objects around it are required too
	parentsMinimal  bool   // the objects around it require nothing else, so attache may add them
	accepts         kinds
	property        wire.Value // the schema of the argument
	lists           bool       // the property lists values in enum or const, and the rule may fill one of them
	limit           *limit     // on strings; nil if there is none
	verdict         Verdict    // of a rule with PathOnly

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
		if p.why = otherKeyword(at, i > 0); p.why != "" {
			break
		}
		required := at.Get("required")
		if i > 0 {
			p.parentsRequired = p.parentsRequired && p.required // p.required is still that of the object around
			p.parentsMinimal = p.parentsMinimal && containsOnly(required, key)
		}
		p.required = contains(required, key)
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
	p.accepts = acceptedKinds(at, true)
	if p.accepts&texts != 0 && r.Mode == Fill {
		if l := newLimit(at, true); l.restricts() {
			p.limit = &l
		}
	}
	p.property, p.lists = at, r.Mode == Fill && !r.PathOnly && hasKeyword(at, true, "enum", "const")
	if r.PathOnly {
		p.verdict = Judge(t.Name, t.InputSchema, r.Argument...)
	}
	return p
}

// otherKeyword returns a keyword by which a schema constrains an object other than through
// its properties, "" if there is none. inner means that the object is the value of a property;
// its type must then be "object".
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

// references reports whether a reference in a schema may refer to the argument with that
// name or to an object around it, and whether one refers to another document. One to a definition, or
// to a property that surely has another name, does not; escapes may spell any name.
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

// contains reports whether an array contains the string.
func contains(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if e.Equals(text) {
			return true
		}
	}
	return false
}

// containsOnly reports whether an array contains nothing but that string.
func containsOnly(array wire.Value, text string) bool {
	for e := range array.Elements() {
		if !e.Equals(text) {
			return false
		}
	}
	return true
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
	case p.state == unclear && p.why == "":
		return "the server does not list the tool"
	case p.state == unclear:
		return "the tool's schema has " + p.why + " around the argument, which attache does not follow"
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
	switch {
	case p.lists && listed(p.property, v, true):
		return ""
	case p.lists && !p.accepts.has(v):
		return textNotListed
	case !p.accepts.has(v):
		return textOtherType
	case v.isNumber():
		return numberMisfit(p.property, v.raw, true)
	}
	if text, ok := v.text(); ok && p.limit != nil {
		return p.limit.refuses(text)
	}
	return ""
}

// acceptsAny reports whether the argument accepts values of a type that the rule's value may have. It
// does not look at limits on strings, and an argument with enum or const accepts none.
func (p *place) acceptsAny() bool { return p.accepts&p.rule.valueKinds() != 0 }

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

// valueKinds returns the types that the rule's value may have.
func (r *rule) valueKinds() kinds {
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

// kindOf maps the names of types in JSON Schema to kinds. For integers see numberMisfit.
var kindOf = map[string]kinds{
	"string": texts, "number": numbers, "integer": numbers, "boolean": booleans, "object": objects, "array": arrays, "null": nulls,
}

// kindAt maps the first byte of a value to its kind, except for numbers.
var kindAt = map[byte]kinds{'"': texts, 't': booleans, 'f': booleans, '{': objects, '[': arrays, 'n': nulls}

// typesOf returns the kinds that a schema's keyword type allows.
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

// has reports whether a value is of one of the kinds.
func (k kinds) has(v *value) bool {
	if v.raw == nil {
		return k&texts != 0
	}
	return k&cmp.Or(kindAt[v.raw[0]], numbers) != 0
}

// acceptedKinds returns the kinds of values that a property accepts, apart from limits on
// strings. A property with an enum accepts none; see listed. Alternatives are followed only if
// outer is set, for schemas such as "string or null".
func acceptedKinds(property wire.Value, outer bool) kinds {
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
			set &= alternativeKinds(m.Value, key == "oneOf")
		}
	}
	return set
}

// alternativeKinds returns the kinds that one of the alternatives accepts and, with oneOf, no
// other alternative allows: a value that two of them accept is not valid.
func alternativeKinds(alternatives wire.Value, oneOf bool) (set kinds) {
	var once, twice kinds
	for e := range alternatives.Elements() {
		set |= acceptedKinds(e, false)
		allowed := typesOf(e)
		twice |= once & allowed
		once |= allowed
	}
	if oneOf {
		set &^= twice
	}
	return set
}
