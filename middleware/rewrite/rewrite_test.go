package rewrite

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

var check = testkit.Check

func program(t testing.TB, src string, want expression.Type) *expression.Program {
	t.Helper()
	p, err := expression.Compile(src, want)
	check(t, err)
	return p
}

func TestCompile(t *testing.T) {
	arguments := program(t, `has(arguments.x)`, expression.Bool)
	value := program(t, `1`, expression.Any)
	one := []string{"a"}
	for name, test := range map[string]struct {
		rules []Rule
		want  string
	}{
		"no tools":           {[]Rule{{Hide: true}}, "rewrite[0]: no tools are named"},
		"rename no tools":    {[]Rule{{Tools: one, Rename: "b"}, {Rename: "c"}}, "rewrite[1]: no tools are named"},
		"nothing to do":      {[]Rule{{Tools: one, Hide: true}, {Tools: one}}, "rewrite[1]: does nothing"},
		"hide and more":      {[]Rule{{Tools: one, Hide: true, Set: []Setting{{Path: one, Value: value}}}}, "hide leaves nothing"},
		"hide by arguments":  {[]Rule{{Tools: one, Hide: true, When: arguments}}, "when reads arguments"},
		"show by arguments":  {[]Rule{{Tools: one, Describe: "x", When: arguments}}, "when reads arguments"},
		"no condition":       {[]Rule{{Tools: one, Hide: true, When: value}}, "when is not a condition"},
		"rename many":        {[]Rule{{Tools: []string{"a*"}, Rename: "b"}}, "one tool without * and ?"},
		"rename two":         {[]Rule{{Tools: []string{"a", "c"}, Rename: "b"}}, "one tool without * and ?"},
		"rename to the same": {[]Rule{{Tools: one, Rename: "a"}}, "the name it has"},
		"invalid name":       {[]Rule{{Tools: one, Rename: "a\n"}}, "is not the name of a tool"},
		"long name":          {[]Rule{{Tools: one, Rename: strings.Repeat("x", maxName+1)}}, "is not the name of a tool"},
		"set nothing":        {[]Rule{{Tools: one, Set: []Setting{{Value: value}}}}, "an argument without a name"},
		"set inside":         {[]Rule{{Tools: one, Set: []Setting{{Path: []string{"x", "y"}, Value: value}, {Path: []string{"x"}, Value: value}}}}, "x.y and x, and one of them contains"},
		"two of one name":    {[]Rule{{Tools: one, Rename: "c"}, {Tools: []string{"b"}, Rename: "c"}}, "rewrite[1]: b and, by rewrite[0], a would both be shown as c"},
		"one of two names":   {[]Rule{{Tools: one, Rename: "c"}, {Tools: one, Rename: "d"}}, "rewrite[1]: a is renamed by rewrite[0] already"},
	} {
		if _, err := Compile(Options{Rules: test.rules}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
	if s, err := Compile(Options{}); err != nil || s.needs.Enforces || s.needs.ArgumentNames != nil {
		t.Errorf("no rules: %v, %v", s, err)
	}
}

// A rule determines whether the layer enforces, and its argument names.
func TestEnforces(t *testing.T) {
	one, value := []string{"a"}, program(t, `1`, expression.Any)
	for name, test := range map[string]struct {
		rule  Rule
		want  bool
		names [][]string
	}{
		"hide":     {Rule{Tools: one, Hide: true}, true, nil},
		"rename":   {Rule{Tools: one, Rename: "b"}, true, nil},
		"describe": {Rule{Tools: one, Describe: "b"}, false, nil},
		"set": {Rule{Tools: one, Set: []Setting{{[]string{"x", "y"}, value, nil}, {[]string{"x", "z"}, value, nil}, {[]string{"w"}, value, nil}}}, true,
			[][]string{{"x", "w"}, {"y", "z"}}},
	} {
		r, err := Compile(Options{Rules: []Rule{test.rule}})
		check(t, err)
		if got := r.Connect(ConnOptions{}).Layer(); got.Enforces != test.want || !reflect.DeepEqual(got.ArgumentNames, test.names) {
			t.Errorf("%s: %v, %v", name, got.Enforces, got.ArgumentNames)
		}
	}
}

// Compile does not change the caller's rules.
func TestRulesAreNotWrittenTo(t *testing.T) {
	rules := []Rule{{Tools: []string{"a"}, Set: []Setting{{Path: []string{"x"}, Value: program(t, `1`, expression.Any)}}}}
	if _, err := Compile(Options{Rules: rules}); err != nil {
		t.Fatal(err)
	}
	if rules[0].Name != "" || rules[0].Set[0].keys != nil {
		t.Errorf("Compile wrote to the rules: %+v", rules)
	}
}

// The cache for a name holds the rules that match it, not their outcome.
func TestResolveAgain(t *testing.T) {
	c := connect(t, []Rule{
		{Tools: []string{"*_x"}, Hide: true, When: program(t, `session.trust == "sandboxed"`, expression.Bool)},
		{Tools: []string{"old"}, Rename: "new", When: program(t, `principal.tenant == "acme"`, expression.Bool)},
		{Tools: []string{"*a*a*a*a*a*a*b*c"}, Hide: true},
	}...)
	acme := &sessionstate.Context{
		Trust:     sessionstate.Fact{Value: "direct", Source: sessionstate.Operator},
		Principal: &sessionstate.Principal{Tenant: "acme"},
	}
	sandboxed := &sessionstate.Context{Trust: sessionstate.Fact{Value: "sandboxed", Source: sessionstate.Operator}}
	long := func(n int) string { return strings.Repeat("a", n) + "c" }
	for _, test := range []struct {
		view   *sessionstate.Context
		called string
		name   string // the server's
		rule   int    // that refuses
	}{
		{acme, "get_x", "get_x", none},
		{sandboxed, "get_x", "get_x", 0},
		{acme, "get_x", "get_x", none},
		{acme, "new", "old", none},
		{sandboxed, "new", "new", none},
		{acme, "new", "old", none},
		{acme, "old", "old", 1},
		{sandboxed, "old", "old", none},
		{acme, long(100), long(100), 2},
		{acme, long(100), long(100), 2},
		{acme, long(2000), long(2000), 0}, // too long for any pattern but a prefix
		{acme, "other", "other", none},
	} {
		if got := c.resolve(test.view, test.called); got.name != test.name || got.rule != test.rule || (got.why != "") != (test.rule != none) {
			t.Errorf("%.20s: %.20s, rule %d, %q; want %.20s, rule %d", test.called, got.name, got.rule, got.why, test.name, test.rule)
		}
		if c.in.Tool != "" || c.in.Context != nil {
			t.Errorf("%.20s: the inputs were not cleared", test.called)
		}
	}
}

func TestOnce(t *testing.T) {
	c := connect(t)
	for i := range 3 * maxLogged {
		if !c.once(fmt.Sprint(i)) || c.once(fmt.Sprint(i)) {
			t.Fatal("logged twice, or not at all")
		}
	}
	if len(c.logged) > maxLogged {
		t.Errorf("%d messages are remembered", len(c.logged))
	}
}

// page returns the reply to a tools/list, scanned as the relay does.
func page(tools string) *wire.Message {
	var m wire.Message
	var s wire.Scanner
	m.Reset(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":`+tools+`}}`+"\n"))
	m.LookEnvelope()
	s.Look(&m)
	return &m
}

// connect compiles rules and connects a client.
func connect(t testing.TB, rules ...Rule) *Conn {
	t.Helper()
	s, err := Compile(Options{Rules: rules})
	check(t, err)
	return s.Connect(ConnOptions{})
}

// show runs a page that the client asked for through the catalogue and the layer.
func show(t *testing.T, c *Conn, view *sessionstate.Context, reply *wire.Message) {
	t.Helper()
	call := new(relayed.Call)
	call.Reset(nil, true)
	call.SetValue(sessionstate.ContextKey{}, view)
	ctx := &relayed.Context{Context: t.Context(), Call: call}
	chain := middleware.Chain(func(context.Context, *wire.Message) error { return nil }, c.Layer(), c.catalog.Layer())
	check(t, chain(ctx, wire.NewRequest(wire.Client, []byte("1"), "tools/list", nil)))
	for _, hook := range slices.Backward(call.Hooks()) {
		check(t, hook(ctx, reply))
	}
}

// If an edit would make a line too long for clients, a list with hidden tools is replaced by
// an error, and a list with changed descriptions passes.
func TestListTooLong(t *testing.T) {
	tools := `[{"name":"secret"},{"name":"a","x":"` + strings.Repeat("x", wire.MaxEdited-1000) + `"}]`
	long := Rule{Tools: []string{"a"}, Describe: strings.Repeat("d", 2000)}
	for name, test := range map[string]struct {
		rules []Rule
		kind  wire.Kind
	}{
		"hide":     {[]Rule{long, {Tools: []string{"secret"}, Hide: true}}, wire.Error},
		"describe": {[]Rule{long}, wire.Result},
	} {
		c := connect(t, test.rules...)
		reply := page(tools)
		if show(t, c, nil, reply); reply.Kind() != test.kind || reply.Kind() == wire.Error && strings.Contains(string(reply.Frame()), "secret") {
			t.Errorf("%s: the reply is %v: %.200s", name, reply.Kind(), reply.Frame())
		}
	}
}

// fuzzed returns a connection with rules of each kind.
func fuzzed(t testing.TB) *Conn {
	c := connect(t, []Rule{
		{Tools: []string{"h*", "*\u00e9"}, Hide: true},
		{Tools: []string{"n"}, Rename: "new", Describe: `with "quotes" and ` + "\n"},
		{Tools: []string{"new"}, Rename: "n"},
		{Tools: []string{"d*", "x"}, Describe: "D"},
		{Tools: []string{"a"}, Hide: true, When: program(t, `!tool.annotations.readOnlyHint && tool.annotations.title != "shown"`, expression.Bool)},
	}...)
	return c
}

// FuzzList compares the edits of a list with a model that decodes it: the result is valid JSON,
// hidden entries are gone, the others are in order, and an entry that no rule names is unchanged.
func FuzzList(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[ ]`, `{}`, `null`, `[{"name":"h"}]`, `[{"name":"h"},{"name":"hh"} , {"name":"k"}]`,
		`[{"name":"k"},{"name":"h"}]`, `[{"name":"n","description":"old"},{"name":"new"}]`,
		`[{"name":"n" , "x" : 1e400 },7,[],"n",{"description":"n"}]`, `[{ },{"name":"dd"},{"name":"x","description":{"a":[1]}}]`,
		`[{"n\u0061me":"\u0068"},{"name":"\u00e9"}]`, `[{"name":"a","annotations":{"title":"shown"}},{"name":"a"}]`,
		`[{"name":"a","annotations":{"readOnlyHint":true,"x":1e999}},{"name":"a","annotations":{"title":"shown","x":-1e999}}]`,
		`[{"name":"a","annotations":{"readOnlyHint":true,"x":"` + strings.Repeat("x", 4<<10) + `"}},{"name":"` + strings.Repeat("k", 1025) + `"}]`,
		`[{"name":""},{"name":"h"}]`, `[{"name":"h","name":"k"}]`, `[{"name":7},{"name":null},{"name":["h"]}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tools string) {
		reply := page(tools)
		if !reply.Plain() || reply.Kind() != wire.Result {
			t.Skip()
		}
		var before []json.RawMessage
		if json.Unmarshal([]byte(reply.Get("result", "tools").Raw), &before) != nil {
			before = nil
		}
		show(t, fuzzed(t), nil, reply)
		if !json.Valid(reply.Frame()) {
			t.Fatalf("not JSON: %s", reply.Frame())
		}
		if reply.Kind() == wire.Error {
			return
		}
		var after []json.RawMessage
		if err := json.Unmarshal(reply.Get("result", "tools").Raw, &after); before != nil && err != nil {
			t.Fatal(err)
		}
		compare(t, before, after)
	})
}

// compare compares the list before and after the edits.
func compare(t *testing.T, before, after []json.RawMessage) {
	for _, raw := range before {
		name := wire.Value{Raw: raw}.Get("name")
		if hiddenByModel(name, raw) {
			continue
		}
		if len(after) == 0 {
			t.Fatalf("%s is missing", raw)
		}
		now := after[0]
		after = after[1:]
		shown := wire.Value{Raw: now}
		switch text := name.Text(); {
		case text == "n" || text == "new":
			if got := shown.Get("name").Text(); got != map[string]string{"n": "new", "new": "n"}[text] {
				t.Fatalf("%s became %s", raw, now)
			}
		case text == "x" || strings.HasPrefix(text, "d"):
			if !shown.Get("description").Equals("D") || shown.Get("name").Text() != text {
				t.Fatalf("%s became %s", raw, now)
			}
		case string(now) != string(raw):
			t.Fatalf("%s became %s", raw, now)
		}
	}
	if len(after) > 0 {
		t.Fatalf("unexpected entries: %s", after)
	}
}

// hiddenByModel reports whether the rules of fuzzed hide an entry.
func hiddenByModel(name wire.Value, raw json.RawMessage) bool {
	text := name.Text()
	switch {
	case !name.IsString(), strings.HasPrefix(text, "h"), strings.HasSuffix(text, "\u00e9"):
		return true
	case len(text) > 1024: // glob.ErrTooLong
		return true
	case text != "a":
		return false
	}
	a := wire.Value{Raw: raw}.Get("annotations")
	if len(a.Raw) > 4<<10 || a.Exists() && json.Unmarshal(a.Raw, new(any)) != nil {
		return true // a number beyond float64 cannot be read, so the condition is undecided
	}
	return string(a.Get("readOnlyHint").Raw) != "true" && !a.Get("title").Equals("shown")
}
