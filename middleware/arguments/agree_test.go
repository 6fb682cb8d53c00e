package arguments

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// pinned is the value that the rules of these tests pin the argument to.
const pinned = "acme"

func pinRule(mode Mode, schema Schema, path ...string) *rule {
	value, err := expression.Compile("session.id", expression.Any)
	if err != nil {
		panic(err)
	}
	if mode == Forbid {
		value = nil
	}
	r := newRule(0, Rule{Argument: path, Mode: mode, Schema: schema, Value: value})
	return &r
}

func TestAgree(t *testing.T) {
	for _, test := range []struct {
		name   string
		rule   *rule
		before string
		after  string // "" if it cannot be done
	}{
		{"the property and its name in required", pinRule(Pin, "", "p"),
			`{"properties": {"p": {"type":"string"}, "a": {}}, "required": ["a", "p"], "x": 1}`,
			`{"properties": {"a": {}}, "required": ["a"], "x": 1}`},
		{"an escaped name", pinRule(Pin, "", "p"), `{"properties":{"\u0070":{}},"required":["\u0070"]}`, `{"properties":{}}`},
		{"kept as it is", pinRule(Pin, Optional, "p"), `{"properties":{"p":{}},"required":["p"]}`, `{"properties":{"p":{}}}`},
		{"in allOf, anyOf, if", pinRule(Pin, "", "p"),
			`{"allOf":[{"properties":{"p":{"enum":["acme"]}},"required":["p"]}],"anyOf":[{"required":["p"]},{"required":["a"]}],"if":{"required":["p","a"]},"then":{"required":["b"]}}`,
			`{"allOf":[{"properties":{}}],"anyOf":[{},{"required":["a"]}],"if":{"required":["a"]},"then":{"required":["b"]}}`},
		{"nested", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{}},"required":["p"]}}}`,
			`{"properties":{"o":{"type":"object","properties":{}}}}`},
		{"nested, in an object that needs more", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}}}`,
			`{"properties":{"o":{"type":"object","properties":{"a":{}},"required":["a"]}},"required":["o"]}`},
		{"nested twice, in an object that needs more", pinRule(Pin, "", "n", "o", "p"),
			`{"properties":{"n":{"type":"object","properties":{"o":{"type":"object","properties":{"p":{}},"required":["a"]}}}},"required":["z"]}`,
			`{"properties":{"n":{"type":"object","properties":{"o":{"type":"object","properties":{},"required":["a"]}},"required":["o"]}},"required":["z","n"]}`},
		{"nested, where an object or nothing goes", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"anyOf":[{"$ref":"#/$defs/O"},{"type":"null"}],"default":null}},"$defs":{"O":{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}}}`,
			`{"properties":{"o":{"anyOf":[{"$ref":"#/$defs/O"},{"type":"null"}],"default":null}},"$defs":{"O":{"type":"object","properties":{}}}}`},
		{"nested, where an object that needs more or nothing goes", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"anyOf":[{"$ref":"#/$defs/O"},{"type":"null"}]}},"$defs":{"O":{"type":"object","properties":{"p":{"type":"string"}},"required":["p","a"]}}}`, ""},
		{"nested, where a string may go", pinRule(Pin, "", "o", "p"), `{"properties":{"o":{"properties":{"p":{}}}}}`, ""},
		{"nested, in an object that others are required with", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{}}},"a":{}},"dependentRequired":{"o":["a"]}}`,
			`{"properties":{"o":{"type":"object","properties":{}},"a":{}},"dependentRequired":{"o":["a"]},"required":["o"]}`},
		{"nested, in an object that is an alternative", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{}}},"a":{}},"oneOf":[{"required":["o"]},{"required":["a"]}]}`,
			`{"properties":{"o":{"type":"object","properties":{}},"a":{}},"oneOf":[{"required":["o"]},{"required":["a"]}],"required":["o"]}`},
		{"nested, in an object that decides", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{}}}},"if":{"required":["o"]},"then":{"required":["b"]}}`,
			`{"properties":{"o":{"type":"object","properties":{}}},"if":{"required":["o"]},"then":{"required":["b"]},"required":["o"]}`},
		{"nested, in one of a number of properties", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{}}}},"maxProperties":1}`,
			`{"properties":{"o":{"type":"object","properties":{}}},"maxProperties":1,"required":["o"]}`},
		{"nested, where a pattern fits", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"type":"object","properties":{"p":{}}}},"patternProperties":{"o":{"maxProperties":1}}}`, ""},
		{"shown, and others depend on it", pinRule(Pin, Optional, "p"),
			`{"properties":{"p":{},"a":{}},"dependentRequired":{"p":["a"]},"required":["p"]}`,
			`{"properties":{"p":{},"a":{}},"dependentRequired":{},"required":["a"]}`},
		{"what depends on it", pinRule(Pin, "", "p"),
			`{"properties":{"p":{},"a":{}},"dependentRequired":{"p":["a"],"b":["p","c"]},"required":["p"]}`,
			`{"properties":{"a":{}},"dependentRequired":{"b":["c"]},"required":["a"]}`},
		{"what depends on it, in another place", pinRule(Pin, "", "p"),
			`{"properties":{"p":{}},"dependentSchemas":{"p":{"required":["a"]}},"dependencies":{"p":["b"]}}`,
			`{"properties":{},"dependentSchemas":{},"dependencies":{},"required":["b"],"allOf":[{"required":["a"]}]}`},
		{"a definition of its own", pinRule(Pin, "", "p"),
			`{"$ref":"#/$defs/Args","$defs":{"Args":{"properties":{"p":{}},"required":["p"]}}}`,
			`{"$ref":"#/$defs/Args","$defs":{"Args":{"properties":{}}}}`},
		{"an old definition with an odd name", pinRule(Pin, "", "p"),
			`{"allOf":[{"$ref":"#/definitions/a~1b%20c"}],"definitions":{"a/b c":{"properties":{"p":{}},"required":["p"]}}}`,
			`{"allOf":[{"$ref":"#/definitions/a~1b%20c"}],"definitions":{"a/b c":{"properties":{}}}}`},
		{"a definition that another property uses", pinRule(Pin, "", "o", "p"),
			`{"properties":{"o":{"$ref":"#/$defs/O"},"other":{"$ref":"#/$defs/O"}},"$defs":{"O":{"type":"object","properties":{"p":{}}}}}`, ""},
		{"a tree", pinRule(Pin, "", "p"), `{"properties":{"p":{},"child":{"$ref":"#"}}}`, ""},
		{"a tree, further down", pinRule(Pin, "", "child", "p"), `{"type":"object","properties":{"p":{},"child":{"$ref":"#"}}}`, ""},
		{"a reference to the property itself", pinRule(Pin, "", "p"), `{"properties":{"p":{},"a":{"$ref":"#/properties/p"}}}`, ""},
		{"a reference that leads elsewhere", pinRule(Pin, "", "p"), `{"properties":{"p":{}},"allOf":[{"$ref":"https://example.com/s"}]}`, ""},
		{"a reference to a name", pinRule(Pin, "", "p"), `{"properties":{"p":{},"a":{"$ref":"#here"}}}`, ""},
		{"endless references", pinRule(Pin, "", "p"), `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A","properties":{"p":{}}}}}`,
			`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A","properties":{}}}}`},
		{"alternatives told apart by it", pinRule(Pin, "", "p"),
			`{"oneOf":[{"properties":{"p":{"const":"x"}},"required":["p"]},{"properties":{"p":{"const":"y"}},"required":["p"]}]}`, ""},
		{"an alternative without it", pinRule(Pin, "", "p"),
			`{"anyOf":[{"properties":{"p":{}},"additionalProperties":false},{"properties":{"a":{}},"additionalProperties":false}]}`, ""},
		{"alternatives that both have it", pinRule(Pin, "", "p"),
			`{"oneOf":[{"properties":{"p":{"type":"string"},"a":{}},"required":["p","a"],"additionalProperties":false},{"properties":{"p":{"type":"string"},"b":{}},"required":["p","b"],"additionalProperties":false}]}`,
			`{"oneOf":[{"properties":{"a":{}},"required":["a"],"additionalProperties":false},{"properties":{"b":{}},"required":["b"],"additionalProperties":false}]}`},
		{"a pattern that fits", pinRule(Pin, "", "pin"), `{"properties":{"pin":{}},"patternProperties":{"^p":{"type":"string"}}}`, ""},
		{"a pattern that does not fit", pinRule(Pin, "", "pin"), `{"properties":{"pin":{}},"patternProperties":{"^x-":{}}}`, `{"properties":{},"patternProperties":{"^x-":{}}}`},
		{"a pattern nobody can read", pinRule(Pin, "", "pin"), `{"properties":{"pin":{}},"patternProperties":{"(?=x)":{}}}`, ""},
		{"a number of properties", pinRule(Pin, "", "p"), `{"properties":{"p":{}},"maxProperties":2}`, ""},
		{"forbidden", pinRule(Forbid, "", "p"),
			`{"properties":{"p":{},"a":{}},"required":["p"],"dependentRequired":{"p":["a"]},"additionalProperties":false}`,
			`{"properties":{"a":{}},"dependentRequired":{},"additionalProperties":false}`},
		{"forbidden, and decisive", pinRule(Forbid, "", "p"), `{"properties":{"p":{}},"if":{"required":["p"]},"then":{"required":["a"]}}`, ""},
		{"forbidden, and another needs it", pinRule(Forbid, "", "p"), `{"properties":{"p":{},"a":{}},"dependentRequired":{"a":["p"]}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			after, ok := agree([]byte(test.before), test.rule)
			if ok != (test.after != "") || ok && string(after) != test.after {
				t.Errorf("got  %s, %v\nwant %s", after, ok, test.after)
			}
		})
	}
}

// A dice makes schemas and calls that have every keyword there is to get wrong. The
// argument is p; a, b and c are others.
type dice struct {
	*rand.Rand
	definitions []string // that schemas may refer to
}

func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// some returns a random subset.
func (d dice) some(names ...string) []any {
	var out []any
	for _, n := range names {
		if d.one(3) {
			out = append(out, n)
		}
	}
	return out
}

type object = map[string]any

// property makes the schema of p. One that has to hold admits the pinned value.
func (d dice) property(sure bool) any {
	admits := []any{object{}, object{"type": "string"}, object{"type": "string", "title": "P"}, true,
		object{"enum": []any{pinned, "x"}}, object{"const": pinned}, object{"type": []any{"string", "null"}}, object{"minLength": 2}}
	if sure {
		return pick(d, admits...)
	}
	return pick(d, append(admits, object{"const": "x"}, object{"type": "integer"}, false, object{"minLength": 9}, object{"enum": []any{"x"}})...)
}

// schema makes a schema for the object that holds p. required says that it may
// require p.
func (d dice) schema(depth int, sure, required bool) object {
	s, properties := object{}, object{}
	if !d.one(3) {
		properties["p"] = d.property(sure)
	}
	for _, n := range []string{"a", "b"} {
		if d.one(2) {
			properties[n] = pick(d, any(object{}), any(object{"type": "string"}), any(object{"type": "integer"}))
		}
	}
	s["properties"] = properties
	names := []string{"a", "b", "c"}
	if required || !sure {
		names = append(names, "p")
	}
	maybe := func(key string, n int, make func() any) {
		if d.one(n) {
			s[key] = make()
		}
	}
	maybe("required", 2, func() any { return append([]any{}, d.some(names...)...) })
	maybe("additionalProperties", 4, func() any { return pick(d, any(false), any(true), any(object{"type": "string"})) })
	maybe("unevaluatedProperties", 8, func() any { return pick(d, any(false), any(true)) })
	maybe("patternProperties", 8, func() any {
		return object{pick(d, "^p", "^[ab]$", "z"): pick(d, any(object{"type": "string"}), any(object{"type": "integer"}))}
	})
	maybe("propertyNames", 20, func() any { return object{"pattern": pick(d, "^[abp]$", "^[ab]$")} })
	maybe("minProperties", 20, func() any { return d.IntN(3) })
	maybe("maxProperties", 20, func() any { return d.IntN(4) })
	maybe("dependentRequired", 5, func() any { return object{pick(d, "p", "a"): append([]any{}, d.some("p", "b", "c")...)} })
	if depth > 0 {
		inner := func(sure bool) func() any {
			return func() any { return d.schema(depth-1, sure, required) }
		}
		list := func(sure bool) func() any {
			return func() any {
				return []any{d.schema(depth-1, sure, required), d.schema(depth-1, sure, required)}[:1+d.IntN(2)]
			}
		}
		maybe("allOf", 5, list(sure))
		maybe("anyOf", 5, list(false))
		maybe("oneOf", 5, list(false))
		maybe("not", 8, inner(false))
		maybe("if", 5, inner(false))
		maybe("then", 5, inner(false))
		maybe("else", 5, inner(false))
		maybe("dependentSchemas", 8, func() any {
			on := pick(d, "p", "a") // p is always there
			return object{on: d.schema(depth-1, sure && on == "p", required)}
		})
		if len(d.definitions) > 0 {
			maybe("$ref", 8, func() any { return "#/$defs/" + pick(d, d.definitions...) })
		}
	}
	return s
}

// members makes an object without p.
func (d dice) members() object {
	o := object{}
	for _, n := range []string{"a", "b", "c"} {
		if d.one(2) {
			o[n] = pick(d, any("x"), any(1))
		}
	}
	return o
}

// root makes a schema of arguments, in which p stands at path.
func (d dice) root(path []string, required bool) object {
	d.definitions = []string{"D", "E"}
	at := d.schema(2, true, required)
	if len(path) > 1 {
		outer := object{"properties": object{"o": at}}
		at["type"] = pick(d, any("object"), any("object"), any([]any{"object", "null"}), any("string"))
		if d.one(3) {
			outer["properties"] = object{"o": object{"anyOf": []any{at, object{"type": "null"}}}}
		}
		if d.one(3) {
			outer["required"] = []any{"o"}
		}
		d.mind(outer)
		at = outer
	}
	d.definitions = []string{"E"}
	at["$defs"] = object{"D": d.schema(1, true, required), "E": d.schema(0, true, required)}
	return at
}

// mind has what is around the object o depend on whether it is there.
func (d dice) mind(outer object) {
	some := func() object {
		return object{"required": append([]any{}, d.some("o", "a", "b")...)}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if d.one(8) {
			outer[keyword] = []any{some(), some()}
		}
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		if d.one(8) {
			outer[keyword] = some()
		}
	}
	if d.one(6) {
		outer["dependentRequired"] = object{pick(d, "o", "a"): append([]any{}, d.some("o", "a", "b")...)}
	}
	if d.one(8) {
		outer["dependentSchemas"] = object{"o": some()}
	}
	if d.one(8) {
		outer["maxProperties"] = 1 + d.IntN(2)
	}
	if d.one(8) {
		outer["patternProperties"] = object{pick(d, "^o", "^z"): object{"maxProperties": 1}}
	}
	if d.one(8) {
		outer["additionalProperties"] = pick(d, any(false), any(true), any(object{"type": "string"}))
	}
}

// call makes arguments without p.
func (d dice) call(path []string) object {
	if len(path) == 1 {
		return d.members()
	}
	o := object{}
	if d.one(2) {
		o = d.members()
	}
	switch d.IntN(4) {
	case 0:
	case 1:
		o["o"] = nil
	default:
		o["o"] = d.members()
	}
	return o
}

// checkAgreement makes a schema and calls, and holds against each other what is
// shown and what the upstream takes. It reports whether the schema was changed.
func checkAgreement(t *testing.T, seed uint64) bool {
	d := dice{Rand: rand.New(rand.NewPCG(seed, 1))}
	r := pinRule(pick(d, Pin, Forbid), "", "p")
	if d.one(2) {
		r = pinRule(r.Mode, "", "o", "p")
	}
	if r.Mode == Pin && d.one(4) {
		r.Schema = Optional
	}
	before, err := json.Marshal(d.root(r.Argument, r.Mode == Pin))
	if err != nil {
		t.Fatal(err)
	}
	after, ok := agree(before, r)
	if !ok {
		return false
	}
	upstream, shown := resolve(t, before), resolve(t, after)
	if upstream == nil || shown == nil {
		return false
	}
	if doc := (&document{root: wire.Value{Raw: after}}); r.Schema == Hide && doc.place(r).state == present {
		t.Errorf("seed %d: the argument is still there\nbefore %s\nafter  %s", seed, before, after)
	}
	for range 20 {
		call := d.call(r.Argument)
		if shown.Validate(call) != nil {
			continue
		}
		text, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		sent := string(text)
		if r.Mode == Pin {
			sent = written(t, r, sent)
		}
		var arguments any
		if err := json.Unmarshal([]byte(sent), &arguments); err != nil {
			t.Fatal(err)
		}
		if err := upstream.Validate(arguments); err != nil {
			t.Errorf("seed %d, %s: the shown schema admits %s, the upstream's does not admit %s: %v\nbefore %s\nafter  %s", seed, r.Mode, text, sent, err, before, after)
			return true
		}
	}
	return string(before) != string(after)
}

func TestUnfillable(t *testing.T) {
	// Followed each time it is met, it would take for ever.
	manyRefs := strings.Repeat(`{"$ref":"#/properties/p"},`, 40) + `{}`
	const decides, other, object, absent = "in the tool's schema it decides what else may be given",
		textOtherType, "the object around it is not there, and by the tool's schema is not to be made for it",
		"the tool's schema does not have the argument"
	for _, test := range []struct {
		name, path, schema, call string
		why                      string
	}{
		{"an argument", "p", `{"properties":{"p":{"type":"string"}}}`, `{}`, ""},
		{"of another tool", "p", `{"properties":{"a":{}}}`, `{}`, absent},
		{"a text or nothing", "p", `{"properties":{"p":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`, `{}`, ""},
		{"one of some words or nothing", "p", `{"properties":{"p":{"anyOf":[{"enum":["x","y"]},{"type":"null"}],"default":null}}}`, `{}`, other},
		{"one of some words", "p", `{"properties":{"p":{"oneOf":[{"const":"x"},{"const":"y"}]}}}`, `{}`, other},
		{"required by each kind of call", "p", `{"oneOf":[{"properties":{"k":{"const":"a"},"p":{"type":"string"}},"required":["k","p"]},{"$ref":"#/$defs/b"}],"$defs":{"b":{"properties":{"k":{"const":"b"},"p":{"type":"string"}},"allOf":[{"required":["p"]}]}}}`, `{"k":"a"}`, ""},
		{"required by one kind of call", "p", `{"oneOf":[{"properties":{"k":{"const":"a"},"p":{"type":"string"}},"required":["k","p"]},{"properties":{"k":{"const":"b"},"p":{"type":"string"}}}]}`, `{"k":"a"}`, decides},
		{"what refers to itself many times in allOf", "p", `{"properties":{"p":{"allOf":[` + manyRefs + `]}}}`, `{}`, other},
		{"what refers to itself many times in oneOf", "p", `{"properties":{"p":{"oneOf":[` + manyRefs + `]}}}`, `{}`, other},
		{"a text that is one word elsewhere", "p", `{"properties":{"p":{"type":"string"}},"allOf":[{"properties":{"p":{"const":"x"}}}]}`, `{}`, other},
		{"a number or nothing", "p", `{"properties":{"p":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{}`, other},
		{"a text of two kinds", "p", `{"properties":{"p":{"oneOf":[{"type":"string","format":"uri"},{"type":"string"}]}}}`, `{}`, other},
		{"either this or that", "p", `{"properties":{"p":{},"a":{}},"oneOf":[{"required":["p"]},{"required":["a"]}]}`, `{"a":1}`, decides},
		{"this or that or both", "p", `{"properties":{"p":{},"a":{}},"anyOf":[{"required":["p"]},{"required":["a"]}]}`, `{"a":1}`, ""},
		{"not both", "p", `{"properties":{"p":{},"a":{}},"not":{"required":["p","a"]}}`, `{"a":1}`, decides},
		{"another with it", "p", `{"properties":{"p":{},"a":{}},"dependentRequired":{"p":["a"]}}`, `{}`, decides},
		{"it with another", "p", `{"properties":{"p":{},"a":{}},"dependentRequired":{"a":["p"]}}`, `{"a":1}`, ""},
		{"another kind of call", "p", `{"anyOf":[{"properties":{"p":{}},"additionalProperties":false},{"properties":{"a":{}},"additionalProperties":false}]}`, `{"a":1}`, decides},
		{"in an object that is there", "o.p", `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}}}`, `{"o":{"a":1}}`, ""},
		{"in an object that needs more", "o.p", `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}}}`, `{}`, object},
		{"in an object that needs nothing more", "o.p", `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p"]}}}`, `{}`, ""},
		{"in an object with which others are required", "o.p", `{"properties":{"o":{"type":"object","properties":{"p":{}}}},"dependentRequired":{"o":["a"]}}`, `{}`, object},
		{"in what is no object", "o.p", `{"properties":{"o":{"type":"string","properties":{"p":{}}}}}`, `{}`, object},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc := document{root: wire.Value{Raw: []byte(test.schema)}}
			p := doc.place(pinRule(Fill, "", strings.Split(test.path, ".")...))
			if why := p.unfillable(wire.Value{Raw: []byte(test.call)}); why != test.why {
				t.Errorf("got %q, want %q", why, test.why)
			}
		})
	}
}

// What a schema requires only in some cases, or of an object that is not there, is
// not required of a call.
func TestRequired(t *testing.T) {
	for _, test := range []struct {
		schema             string
		required, demanded bool
	}{
		{`{"properties":{"o":{"type":"object","properties":{"p":{}},"required":["p"]}},"required":["o"]}`, true, true},
		{`{"properties":{"o":{"type":"object","properties":{"p":{}},"required":["p"]}}}`, true, false},
		{`{"properties":{"o":{"type":"object","properties":{"p":{}},"anyOf":[{"required":["p"]},{"required":["a"]}]}},"required":["o"]}`, false, true},
		{`{"properties":{"o":{"type":"object","properties":{"p":{}},"anyOf":[{"required":["p"]},{"required":["p","a"]}]}},"required":["o"]}`, true, true},
		{`{"properties":{"o":{"type":"object","properties":{"p":{}},"anyOf":[]}},"required":["o"]}`, false, true},
	} {
		doc := document{root: wire.Value{Raw: []byte(test.schema)}}
		if p := doc.place(pinRule(Fill, "", "o", "p")); p.required != test.required || p.demanded != test.demanded {
			t.Errorf("%s: required %t, the object demanded %t", test.schema, p.required, p.demanded)
		}
	}
}

// checkFilling makes a schema and calls that lack the argument, and holds against
// each other what the client may send, by the schema it is shown and by the
// upstream's own, and what the upstream takes. It reports whether any was filled.
func checkFilling(t *testing.T, seed uint64) (filled bool) {
	d := dice{Rand: rand.New(rand.NewPCG(seed, 2))}
	r := pinRule(Fill, "", "p")
	if d.one(2) {
		r = pinRule(Fill, "", "o", "p")
	}
	before, err := json.Marshal(d.root(r.Argument, true))
	if err != nil {
		t.Fatal(err)
	}
	doc := document{root: wire.Value{Raw: before}}
	p, after := doc.place(r), before
	if p.shaped() {
		if text, ok := agree(before, r); ok {
			after = text
		}
	}
	upstream, shown := resolve(t, before), resolve(t, after)
	if upstream == nil || shown == nil {
		return false
	}
	for range 20 {
		call := d.call(r.Argument)
		if shown.Validate(call) != nil && upstream.Validate(call) != nil {
			continue
		}
		text, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		sent := string(text)
		if p.unfillable(wire.Value{Raw: text}) == "" {
			sent, filled = written(t, r, sent), true
		}
		var arguments any
		if err := json.Unmarshal([]byte(sent), &arguments); err != nil {
			t.Fatal(err)
		}
		if err := upstream.Validate(arguments); err != nil {
			t.Errorf("seed %d: a client may send %s, and the upstream's schema does not admit %s: %v\nbefore %s\nafter  %s", seed, text, sent, err, before, after)
			return filled
		}
	}
	return filled
}

// What a client may leave out is filled only where that does no harm.
func TestFillingDoesNoHarm(t *testing.T) {
	filled := 0
	for seed := range uint64(1_000) {
		if checkFilling(t, seed) {
			filled++
		}
		if t.Failed() {
			return
		}
	}
	if filled < 40 {
		t.Errorf("only %d of 1000 calls were filled: the test tests little", filled)
	}
}

// written returns arguments as the layer sends them.
func written(t *testing.T, r *rule, arguments string) string {
	t.Helper()
	m := wire.NewMessage(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":`+arguments+`}}`))
	keys, text, err := r.spot(m.Arguments(), wire.Quote(pinned))
	if err == nil {
		err = m.Set(text, keys...)
	}
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	return string(m.Arguments().Raw)
}

func resolve(t *testing.T, text []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		if strings.Contains(err.Error(), "cannot be resolved") {
			t.Fatal(err)
		}
		return nil
	}
	return resolved
}

// What the shown schema admits, the upstream's admits as it is sent.
func TestAgreement(t *testing.T) {
	changed := 0
	for seed := range uint64(2_000) {
		if checkAgreement(t, seed) {
			changed++
		}
		if t.Failed() {
			return
		}
	}
	if changed < 200 {
		t.Errorf("only %d of 2000 schemas were changed: the test tests little", changed)
	}
}

func FuzzAgreement(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkAgreement(t, seed) })
}
