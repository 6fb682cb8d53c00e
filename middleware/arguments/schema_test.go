package arguments

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// pinned is the value that the rules of these tests give to the argument.
const pinned = "acme"

func pinRule(mode Mode, schema Schema, path ...string) Rule {
	value := compile("session.id", expression.Any)
	if mode == Forbid {
		value = nil
	}
	return Rule{Tools: []string{"t"}, Argument: path, Mode: mode, Schema: schema, Value: value}
}

// A toolTest runs the layer for a server with one tool, t.
type toolTest struct {
	*testing.T
	conn    *Conn
	handler middleware.Handler
	ctx     *relayed.Context
	sent    *wire.Message
	session string // the session's id

	listener func(*middleware.Call, middleware.Note) // called with each note, if not nil
}

func newToolTest(t *testing.T, r Rule) *toolTest {
	t.Helper()
	shared, err := Compile(Options{Rules: []Rule{r}})
	check(t, err)
	x := &toolTest{T: t, session: pinned, ctx: &relayed.Context{Context: t.Context(), Call: new(relayed.Call)}}
	catalog := new(middleware.Catalog)
	x.conn = shared.Connect(ConnOptions{Catalog: catalog})
	x.handler = x.conn.Layer().Wrap(catalog.Layer().Wrap(
		func(_ context.Context, m *wire.Message) error {
			x.sent = m
			return nil
		}))
	return x
}

func (x *toolTest) handle(method, params string) {
	x.Helper()
	x.sent = nil
	x.ctx.Call.Reset(relay{}, true)
	if x.listener != nil {
		x.ctx.Call.Listen(true, x.listener)
	}
	x.ctx.Call.SetValue(sessionstate.ContextKey{}, &sessionstate.Context{
		Session:   sessionstate.Fact{Value: x.session, Source: sessionstate.Operator},
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.HostEnvironment, From: "CLAUDE_PROJECT_DIR"},
	})
	check(x, x.handler(x.ctx, wire.NewRequest(wire.Client, []byte("1"), method, []byte(params))))
}

// shown returns the tool's schema in the list that the client receives.
func (x *toolTest) shown(schema string) string {
	x.Helper()
	return x.listed(`{"name":"t","inputSchema":` + schema + `}`)
}

// listed is like shown, but the server has several tools. It returns the schema of the first one.
func (x *toolTest) listed(tools string) string {
	x.Helper()
	x.handle("tools/list", "{}")
	reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`+tools+`]}}`))
	for _, hook := range slices.Backward(x.ctx.Call.Hooks()) {
		check(x, hook(x.ctx, reply))
	}
	for entry := range reply.Get("result", "tools").Elements() {
		return string(entry.Get("inputSchema").Raw)
	}
	return ""
}

// call returns the arguments of a call that the server receives, "" if the call is refused.
func (x *toolTest) call(arguments string) string {
	x.Helper()
	x.handle("tools/call", `{"name":"t","arguments":`+arguments+`}`)
	if x.sent == nil {
		return ""
	}
	return string(x.sent.Arguments().Raw)
}

// TestShown lists a tool under a rule that pins, fills or forbids, and then calls it.
func TestShown(t *testing.T) {
	pin, fill, hide := pinRule(Pin, "", "p"), pinRule(Fill, "", "p"), pinRule(Fill, Hide, "p")
	inner, fillInner := pinRule(Pin, "", "o", "p"), pinRule(Fill, "", "o", "p")
	const same = "unchanged"
	for _, test := range []struct {
		name   string
		rule   Rule
		schema string
		shown  string
		call   string // what the client gives
		sent   string
	}{
		{"the property and its name in required", pin,
			`{"properties": {"p": {"type":"string"}, "a": {}}, "required": ["a", "p"], "x": 1}`,
			`{"properties": {"a": {}}, "required": ["a"], "x": 1}`, `{}`, `{"p":"acme"}`},
		{"filled", fill, `{"properties":{"p":{},"a":{}},"required":["p","a"]}`, `{"properties":{"p":{},"a":{}},"required":["a"]}`, `{}`, `{"p":"acme"}`},
		{"filled and hidden", hide, `{"properties":{"p":{},"a":{}},"required":["p"]}`, `{"properties":{"a":{}}}`, `{}`, `{"p":"acme"}`},
		{"forbidden", pinRule(Forbid, "", "p"), `{"properties":{"p":{},"a":{}},"required":["p"],"additionalProperties":false}`,
			`{"properties":{"a":{}},"additionalProperties":false}`, `{}`, `{}`},
		{"an escaped name", pin, `{"properties":{"\u0070":{}},"required":["\u0070"]}`, `{"properties":{}}`, `{}`, `{"p":"acme"}`},
		{"kept in the schema", pinRule(Pin, Keep, "p"), `{"properties":{"p":{}},"required":["p"]}`, same, `{}`, `{"p":"acme"}`},
		{"pinned and shown", pinRule(Pin, Optional, "p"), `{"properties":{"p":{}},"required":["p"]}`, `{"properties":{"p":{}}}`, `{}`, `{"p":"acme"}`},
		{"another tool's argument", pin, `{"properties":{"a":{}}}`, same, `{}`, `{}`},
		{"another tool's argument that the call has", pin, `{"properties":{"a":{}}}`, same, `{"p":"x"}`, `{"p":"acme"}`},
		{"a tool without a schema", pin, `true`, same, `{}`, `{"p":"acme"}`},

		{"nested", inner, `{"properties":{"o":{"type":"object","properties":{"p":{}},"required":["p"]}}}`,
			`{"properties":{"o":{"type":"object","properties":{}}}}`, `{}`, `{"o":{"p":"acme"}}`},
		{"nested, in an object that requires more", inner, `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}}}`, same,
			`{"o":{"a":1}}`, `{"o":{"a":1,"p":"acme"}}`},
		{"nested, in a required object that requires more", inner, `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}},"required":["o"]}`,
			`{"properties":{"o":{"type":"object","properties":{"a":{}},"required":["a"]}},"required":["o"]}`, `{"o":{"a":1}}`, `{"o":{"a":1,"p":"acme"}}`},
		{"nested, in an object that may be a string", inner, `{"properties":{"o":{"properties":{"p":{}}}}}`, same, `{}`, `{"o":{"p":"acme"}}`},
		{"nested, filled", fillInner, `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p"]}}}`,
			`{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}}}}}`, `{}`, `{"o":{"p":"acme"}}`},
		{"nested, filled, in an object that requires more", fillInner, `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}}}`,
			`{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["a"]}}}`, `{}`, `{}`},
		{"nested, filled, in an object of the call", fillInner, `{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["p","a"]}}}`,
			`{"properties":{"o":{"type":"object","properties":{"p":{},"a":{}},"required":["a"]}}}`, `{"o":{"a":1}}`, `{"o":{"a":1,"p":"acme"}}`},
		{"nested, filled, in an object that may be a string", fillInner, `{"properties":{"o":{"properties":{"p":{}}}}}`, same, `{"o":{}}`, `{"o":{}}`},

		{"a string or null", fill, `{"properties":{"p":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`, same, `{}`, `{"p":"acme"}`},
		{"an enum or null", fill, `{"properties":{"p":{"anyOf":[{"enum":["x","y"]},{"type":"null"}]}},"required":["p"]}`, same, `{}`, `{}`},
		{"constants", fill, `{"properties":{"p":{"oneOf":[{"const":"x"},{"const":"y"}]}},"required":["p"]}`, same, `{}`, `{}`},
		{"an enum with the value", fill, `{"properties":{"p":{"type":"string","enum":["x","\u0061cme"]}},"required":["p"]}`,
			`{"properties":{"p":{"type":"string","enum":["x","\u0061cme"]}}}`, `{}`, `{"p":"acme"}`},
		{"an enum with the value, hidden", hide, `{"properties":{"p":{"anyOf":[{"enum":["acme"]},{"type":"null"}]},"a":{}},"required":["p","a"]}`,
			`{"properties":{"a":{}},"required":["a"]}`, `{"a":1}`, `{"a":1,"p":"acme"}`},
		{"constants with the value", fill, `{"properties":{"p":{"oneOf":[{"const":"x"},{"const":"acme"}]}}}`, same, `{}`, `{"p":"acme"}`},
		{"an enum of another type", fill, `{"properties":{"p":{"type":"integer","enum":["acme"]}},"required":["p"]}`, same, `{}`, `{}`},
		{"an enum and a pattern", fill, `{"properties":{"p":{"enum":["acme"],"pattern":"x"}},"required":["p"]}`, same, `{}`, `{}`},
		{"an enum and a limit that the value keeps", fill, `{"properties":{"p":{"type":"string","enum":["acme"],"minLength":1,"format":"enum"}}}`, same, `{}`, `{"p":"acme"}`},
		{"two alternatives that take the value", fill, `{"properties":{"p":{"oneOf":[{"enum":["acme"]},{"type":"string"}]}},"required":["p"]}`, same, `{}`, `{}`},
		{"a number", fill, `{"properties":{"p":{"type":"integer"}},"required":["p"]}`, same, `{}`, `{}`},
		{"two alternatives that are strings", fill, `{"properties":{"p":{"oneOf":[{"type":"string","format":"uri"},{"type":"string"}]}}}`, same, `{}`, `{}`},
		{"alternatives of alternatives", fill, `{"properties":{"p":{"anyOf":[{"anyOf":[{"type":"string"}]}]}}}`, same, `{}`, `{}`},
		{"a property by reference", fill, `{"properties":{"p":{"$ref":"#/$defs/P"}},"required":["p"],"$defs":{"P":{"type":"string"}}}`, same, `{}`, `{}`},
		{"a property by reference, pinned", pin, `{"properties":{"p":{"$ref":"#/$defs/P"}},"required":["p"],"$defs":{"P":{"type":"string"}}}`,
			`{"properties":{},"$defs":{"P":{"type":"string"}}}`, `{}`, `{"p":"acme"}`},
		{"another property by reference", fill, `{"properties":{"p":{},"a":{"type":"object"},"b":{"$ref":"#/properties/a"}},"required":["p"]}`,
			`{"properties":{"p":{},"a":{"type":"object"},"b":{"$ref":"#/properties/a"}}}`, `{}`, `{"p":"acme"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newToolTest(t, test.rule)
			want := test.shown
			if want == same {
				want = test.schema
			}
			if got := x.shown(test.schema); got != want {
				t.Errorf("shown is %s\nwant     %s", got, want)
			}
			if got := x.call(test.call); got != test.sent {
				t.Errorf("sent is %s\nwant    %s", got, test.sent)
			}
		})
	}
}

// Compile refuses invalid rules, and the layer names the arguments that a condition reads.
func TestCompile(t *testing.T) {
	good := pinRule(Pin, "", "o", "p")
	good.When, _ = expression.Compile(`arguments.kind == "x"`, expression.Bool)
	shared, err := Compile(Options{Rules: []Rule{good}})
	check(t, err)
	if got := shared.Connect(ConnOptions{}).Layer(); !got.Enforces || len(got.ArgumentNames) != 2 ||
		!slices.Equal(got.ArgumentNames[0], []string{"o", "kind"}) || !slices.Equal(got.ArgumentNames[1], []string{"p"}) {
		t.Errorf("the layer enforces %v and names %q", got.Enforces, got.ArgumentNames)
	}
	for want, bad := range map[string]Rule{
		"arguments[0]: no tools are named":          {Argument: []string{"p"}, Mode: Forbid}, // it would forbid nothing
		"arguments[0]: an empty pattern":            {Tools: []string{""}, Argument: []string{"p"}, Mode: Forbid},
		"arguments[0]: it names no argument":        {Tools: []string{"*"}, Value: good.Value},
		"arguments[0]: value is a condition":        {Tools: []string{"*"}, Argument: []string{"p"}, Value: good.When},
		"arguments[0]: when is not a condition":     {Tools: []string{"*"}, Argument: []string{"p"}, Mode: Forbid, When: good.Value},
		"arguments[0]: it has no value":             {Tools: []string{"*"}, Argument: []string{"p"}},
		`arguments[0]: the mode "fil" is not known`: {Tools: []string{"*"}, Argument: []string{"p"}, Mode: "fil", Value: good.Value},
		`mine: the mode "pinn" is not known`:        {Name: "mine", Tools: []string{"*"}, Argument: []string{"p"}, Mode: "pinn", Value: good.Value},
	} {
		if _, err := Compile(Options{Rules: []Rule{bad}}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// If a keyword constrains the object around the argument, the schema does not change, and the
// argument is not filled but pinned.
func TestNotPlain(t *testing.T) {
	for _, around := range []string{
		`"$ref":"#/$defs/A","$defs":{"A":{}}`, `"$dynamicRef":"#a"`, `"$recursiveRef":"#"`, `"allOf":[{"required":["p"]}]`,
		`"anyOf":[{"required":["p"]},{"required":["a"]}]`, `"oneOf":[{"required":["p"]},{"required":["a"]}]`, `"not":{"required":["p"]}`,
		`"if":{"required":["p"]},"then":{"required":["a"]}`, `"then":{}`, `"else":{}`, `"dependentRequired":{"p":["a"]}`,
		`"dependentSchemas":{"a":{"required":["p"]}}`, `"dependencies":{"p":["a"]}`, `"patternProperties":{"^p":{"minLength":9}}`,
		`"propertyNames":{"minLength":2}`, `"minProperties":1`, `"maxProperties":1`, `"unevaluatedProperties":false`, `"const":{"a":1}`,
		`"enum":[{"a":1}]`, `"all\u004ff":[{"required":["p"]}]`,
	} {
		level := `{"type":"object","properties":{"p":{"type":"string"},"a":{}},"required":["p"],` + around + `}`
		notPlain(t, level, "p")
		notPlain(t, `{"type":"object","properties":{"o":`+level+`}}`, "o", "p")
		notPlain(t, `{"type":"object","properties":{"o":{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}},`+around+`}`, "o", "p")
	}
	for _, elsewhere := range []string{`"#"`, `"#/properties/p"`, `"#/properties/p/x"`, `"#here"`, `"#/properties/%70"`, `"https://example.com/s"`} {
		notPlain(t, `{"properties":{"p":{},"child":{"$ref":`+elsewhere+`}},"required":["p"]}`, "p")
	}
}

func notPlain(t *testing.T, schema string, path ...string) {
	t.Helper()
	outer, sent := "{}", `{"p":"acme"}`
	if len(path) > 1 {
		outer, sent = `{"o":{}}`, `{"o":{"p":"acme"}}`
	}
	for _, test := range []struct {
		rule Rule
		sent string
	}{
		{pinRule(Pin, "", path...), sent},
		{pinRule(Fill, "", path...), outer},
		{pinRule(Forbid, "", path...), outer},
	} {
		x := newToolTest(t, test.rule)
		if got := x.shown(schema); got != schema {
			t.Errorf("%s: shown is %s\nwant %s", test.rule.Mode, got, schema)
		}
		if got := x.call(outer); got != test.sent {
			t.Errorf("%s: %s: sent is %s, want %s", test.rule.Mode, schema, got, test.sent)
		}
	}
}

// A schema that is not plain and does not mention the argument does not have it, so that a pin
// adds nothing to the tool's calls.
func TestNotMentioned(t *testing.T) {
	for _, test := range []struct{ schema, sent string }{
		{`{"properties":{"a":{}},"anyOf":[{"required":["a"]}]}`, `{}`},
		{`{"properties":{"a":{}},"anyOf":[{"required":["a"]}],"$ref":"https://example.com/s"}`, `{"pin":"acme"}`},
		{`{"properties":{"a":{}},"anyOf":[{"properties":{"\u0070in":{}}}]}`, `{"pin":"acme"}`},
	} {
		x := newToolTest(t, pinRule(Pin, "", "pin"))
		x.shown(test.schema)
		if got := x.call(`{}`); got != test.sent {
			t.Errorf("%s: sent is %s, want %s", test.schema, got, test.sent)
		}
	}
}

// A dice makes random schemas with all relevant keywords, and calls. The argument is p; a, b and
// c are others.
type dice struct {
	*rand.Rand
	definitions []string // that schemas may refer to
	anyValue    bool     // the schema of p need not accept the rule's value
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

// property makes the schema of p. With sure, it accepts the pinned value unless anyValue is set.
func (d dice) property(sure bool) any {
	admits := []any{object{}, object{"type": "string"}, object{"type": "string", "title": "P"}, true,
		object{"enum": []any{pinned, "x"}}, object{"const": pinned}, object{"type": []any{"string", "null"}}, object{"minLength": 2},
		object{"pattern": "^a"}, object{"type": "string", "minLength": 4, "maxLength": 4.0}, object{"format": "hostname"}, object{"format": "path"}}
	if sure && !d.anyValue {
		return pick(d, admits...)
	}
	refuses := []any{object{"const": "x"}, object{"type": "integer"}, false, object{"minLength": 9}, object{"enum": []any{"x"}},
		object{"type": "string", "pattern": "^x"}, object{"maxLength": 3}, object{"format": "uuid"}, object{"type": "string", "format": "uri"}}
	if some := append(admits, refuses...); !d.anyValue || !d.one(4) {
		return pick(d, some...)
	}
	one, other := pick(d, append(admits, refuses...)...), pick(d, refuses...)
	return object{pick(d, "anyOf", "oneOf"): []any{one, pick(d, any(object{"type": "null"}), other)}}
}

// withPatterns replaces the formats that dice makes by patterns, because package jsonschema does
// not check formats.
func withPatterns(schema string) []byte {
	return []byte(strings.NewReplacer(`"format":"uuid"`, `"pattern":"^[0-9a-f-]{36}$"`, `"format":"uri"`, `"pattern":"^[a-z]{2,}:"`).Replace(schema))
}

// schema makes a schema for the object that contains p. required means that it may require p.
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
	plain := d.one(2)
	maybe("required", 2, func() any { return append([]any{}, d.some(names...)...) })
	maybe("additionalProperties", 4, func() any { return pick(d, any(false), any(true), any(object{"type": "string"})) })
	if plain { // like the schemas of nearly all tools
		return s
	}
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

// root makes a schema of arguments in which p is at path.
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
		d.constrain(outer)
		at = outer
	}
	d.definitions = []string{"E"}
	at["$defs"] = object{"D": d.schema(1, true, required), "E": d.schema(0, true, required)}
	return at
}

// constrain adds keywords to outer that constrain its property o.
func (d dice) constrain(outer object) {
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

// checkAgreement makes a schema and calls without the argument. If a call is valid by the schema
// that the client was shown or, for a fill, by the server's own schema, then the server's schema
// must accept the call as it is sent. It reports whether the schema was changed and whether a
// call was.
func checkAgreement(t *testing.T, seed uint64) (changed, edited bool) {
	d := dice{Rand: rand.New(rand.NewPCG(seed, 1))}
	r := pinRule(pick(d, Pin, Forbid, Fill), "", "p")
	if d.one(2) {
		r = pinRule(r.Mode, "", "o", "p")
	}
	if r.Mode == Pin && d.one(4) {
		r.Schema = Optional
	}
	if d.anyValue = r.Mode == Fill; d.anyValue {
		r.Value = pick(d, r.Value, compile(`"acme"`, expression.Any), compile("7", expression.Any))
	}
	raw, err := json.Marshal(d.root(r.Argument, r.Mode != Forbid))
	check(t, err)
	before := string(raw)
	x := newToolTest(t, r)
	after := x.shown(before)
	if changed = before != after; !changed && r.Mode != Fill {
		return changed, false
	}
	upstream, shown := resolve(t, withPatterns(before)), resolve(t, withPatterns(after))
	if upstream == nil || shown == nil {
		return changed, false
	}
	for range 20 {
		call := d.call(r.Argument)
		admitted := shown.Validate(call) == nil || r.Mode == Fill && upstream.Validate(call) == nil
		text, err := json.Marshal(call)
		check(t, err)
		sent := x.call(string(text))
		if edited = edited || sent != string(text); !admitted {
			continue
		}
		var arguments any
		if err := json.Unmarshal([]byte(sent), &arguments); err != nil {
			t.Fatalf("seed %d, %s: sent is %s: %v", seed, r.Mode, sent, err)
		}
		if err := upstream.Validate(arguments); err != nil {
			t.Errorf("seed %d, %s: a client may send %s, and the server's schema does not admit %s: %v\nbefore %s\nafter  %s", seed, r.Mode, text, sent, err, before, after)
			return changed, edited
		}
	}
	return changed, edited
}

func TestAgreement(t *testing.T) {
	changed, edited := 0, 0
	for seed := range uint64(1_000) {
		schema, call := checkAgreement(t, seed)
		if schema {
			changed++
		}
		if call {
			edited++
		}
		if t.Failed() {
			return
		}
	}
	if changed < 80 || edited < 60 {
		t.Errorf("only %d of 1000 schemas and the calls of %d were changed: the test tests little", changed, edited)
	}
}

func FuzzAgreement(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkAgreement(t, seed) })
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
