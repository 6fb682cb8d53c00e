package expression

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate"
)

// inputs returns a call in a session with all facts.
func inputs() *Inputs {
	fact := func(v string) sessionstate.Fact { return sessionstate.Fact{Value: v, Source: sessionstate.Operator} }
	return &Inputs{
		Context: &sessionstate.Context{
			Session: fact("s1"), Conversation: fact("c1"), Workspace: fact("/work/a"), WorkspaceID: fact("w1"), Trust: fact("direct"),
			Principal: &sessionstate.Principal{
				User: "ada", Tenant: "acme", Email: "ada@acme.example", Plan: "free", Scope: "acme/platform",
				Roles: []string{"admin", "dev"}, Permissions: []string{"records:read"},
			},
		},
		Tool:        "git_status",
		Annotations: []byte(`{"title":"Status","readOnlyHint":true,"ReadOnlyHint":false,"openWorldHint":"no"}`),
		Arguments: []byte(`{"path":"/work/a/x","n":3,"big":9007199254740993,"huge":18446744073709551615,"f":1.5,"e":1e2,` +
			`"list":["a","b"],"deep":{"k":[1,{"t":true}]},"nil":null,"esc":"\u00e9\n","odd":"a.b"}`),
		Server: "git",
	}
}

// compile compiles an expression that must be valid.
func compile(t testing.TB, src string, want Type) *Program {
	t.Helper()
	p, err := Compile(src, want)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return p
}

func TestBool(t *testing.T) {
	for src, want := range map[string]bool{
		// simple
		`session.trust == "direct"`:                                      true,
		`session.trust != 'direct'`:                                      false,
		`  "admin" in principal.roles  `:                                 true,
		`!("admin" in principal.roles)`:                                  false,
		`!(session.id == "x")`:                                           true,
		`"x" in principal.permissions || server.name == "git"`:           true,
		`"records:read" in principal.permissions`:                        true,
		`session.trust=="direct"&&tool.name=="git_status"`:               true,
		"session.trust == \"direct\"\n&& session.workspace.id == \"w1\"": true,
		`principal.tenant == ""`:                                         false,

		// CEL
		`session.trust == "direct" && (principal.plan == "free" || "x" in principal.roles)`: true,
		`tool.name.startsWith("git_")`:                                                   true,
		`tool.annotations.readOnlyHint`:                                                  true,
		`tool.annotations.destructiveHint`:                                               false,
		`tool.annotations.openWorldHint`:                                                 true,
		`has(tool.annotations.openWorldHint)`:                                            false,
		`has(tool.annotations.readOnlyHint)`:                                             true,
		`tool.annotations.title == "Status"`:                                             true,
		`has(arguments.path) && arguments.path.startsWith(session.workspace.path + "/")`: true,
		`has(arguments.none)`:                                                            false,
		`"none" in arguments`:                                                            false,
		`arguments.n == 3 && arguments.n < 4`:                                            true,
		`arguments.n > 2.5`:                                                              true,
		`arguments.big == 9007199254740993`:                                              true,
		`arguments.big == 9007199254740992`:                                              false,
		`arguments.huge == 18446744073709551615u`:                                        true,
		`arguments.e == 100`:                                                             true,
		`arguments.f == 1.5`:                                                             true,
		`arguments.nil == null`:                                                          true,
		`arguments.deep.k[1].t`:                                                          true,
		`arguments.list.all(x, x in ["a", "b", "c"])`:                                    true,
		`arguments.list.exists(x, x == "z")`:                                             false,
		`arguments.esc == "é\n"`:                                                         true,
		`matches("(", "^[(]$")`:                                                          true,
		`arguments["odd"].matches("^a[.]b$")`:                                            true,
		`size(principal.roles) == 2`:                                                     true,
		`principal.roles.exists(r, r.startsWith("ad"))`:                                  true,
		`has(session.workspace.path)`:                                                    true,
		`has(session.workspace) && has(principal.email)`:                                 true,
		`session.workspace.path == '/work/a'`:                                            true,
		`1 + 1 == 2`:                                                                     true,
		`"""x""" == "x" && session.id == r"s1"`:                                          true,
	} {
		p, err := Compile(src, Bool)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got, err := p.Eval(inputs())
		if err != nil || got.Bool != want {
			t.Errorf("%s = %v, %v; want %v", src, got.Bool, err, want)
		}
	}
}

// Unknown facts are empty, and no condition on them is an error.
func TestNothingKnown(t *testing.T) {
	for src, want := range map[string]bool{
		`session.trust == ""`:                            true,
		`principal.tenant == "" && !has(principal.user)`: true,
		`"admin" in principal.roles`:                     false,
		`principal.roles.exists(r, true)`:                false,
		`size(principal.permissions) == 0`:               true,
		`has(principal.roles)`:                           false,
		`has(session.workspace)`:                         false,
		`session.workspace.path.startsWith("/")`:         false,
		`has(arguments.x)`:                               false,
		`size(arguments) == 0`:                           true,
		`has(tool.annotations)`:                          false,
		`tool.annotations.destructiveHint`:               true,
		`tool.annotations.readOnlyHint`:                  false,
		`tool.annotations.title == ""`:                   true,
		`tool.name == "" && server.name == ""`:           true,
	} {
		p, err := Compile(src, Bool)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		for _, in := range []*Inputs{{}, {Context: &sessionstate.Context{Principal: &sessionstate.Principal{}}}} {
			if got, err := p.Eval(in); err != nil || got.Bool != want {
				t.Errorf("%s = %v, %v; want %v", src, got.Bool, err, want)
			}
		}
	}
}

func TestAny(t *testing.T) {
	for _, test := range []struct {
		src, out string
	}{
		{`session.workspace.path`, `"/work/a"`},
		{`"fixed"`, `"fixed"`},
		{`principal.tenant + "/" + principal.user`, `"acme/ada"`},
		{`string(arguments.n)`, `"3"`},
		{`arguments.path`, `"/work/a/x"`},
		{`principal.tenant`, `"acme"`},
		{`principal.roles`, `["admin","dev"]`},
		{`["agent", session.trust]`, `["agent","direct"]`},
		{`{"b": 1, "a": {"x": [true, null, 1.5, 2u]}}`, `{"a":{"x":[true,null,1.5,2]},"b":1}`},
		{`arguments.big`, `9007199254740993`},
		{`arguments.deep`, `{"k":[1,{"t":true}]}`},
		{`session.trust == "direct"`, `true`},
		{`"<&>\""`, `"<&>\""`},
		{`1e30`, `1e+30`},
		{`null`, `null`},
	} {
		p, err := Compile(test.src, Any)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
			continue
		}
		got, err := p.Eval(inputs())
		if text := string(got.JSON); err != nil || text != test.out {
			t.Errorf("%s = %s, %v; want %s", test.src, text, err, test.out)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, test := range []struct {
		src  string
		want Type
		text string
	}{
		{``, Bool, "column 1: the expression is empty"},
		{`session.trust`, Bool, "column 1: the expression yields a string, not true or false: write a condition"},
		{`  session.id`, Bool, "column 3: the expression yields a string, not true or false"},
		{`principal.roles`, Bool, "column 1: the expression yields a list of strings, not true or false"},
		{`principal.rolez == []`, Bool, "column 10: undefined field 'rolez': principal has email, permissions, plan, roles"},
		{`session.workspace.pth`, Any, "column 18: undefined field 'pth': session.workspace has id, path"},
		{`tool.annotations.readonlyHint`, Bool, "tool.annotations has destructiveHint"},
		{`seesion.trust == "x"`, Bool, "column 1: undeclared reference to 'seesion' (did you mean 'session'?): an expression reads session,"},
		{"true &&\n  foo", Bool, "line 2, column 3: undeclared reference to 'foo'"},
		{`session.id == "s" && arguments.resource-group == "x"`, Bool, `a name with a dash stands in brackets, as in arguments["resource-group"]`},
		{`session.workspace.path.split("/")[0]`, Any, "column 29: undeclared reference to 'split': only the standard functions of CEL are known"},
		{`lower(session.id)`, Any, "undeclared reference to 'lower': only the standard functions of CEL are known"},
		{`session.trust == 3`, Bool, "column 15: found no matching overload for '_==_' applied to '(string, int)'"},
		{`server == "x"`, Bool, "(attache.server, string)': compare server.name"},
		{`"x" != tool`, Bool, "compare tool.name"},
		{`session in ["s1"]`, Bool, "compare a field of it: session has "},
		{`session.workspace == "/src"`, Bool, "compare a field of it: session.workspace has id, path"},
		{`session.trust = "x"`, Bool, "equal is =="},
		{`session.trust == "x" and true`, Bool, "Syntax error"},
		{`session.id == "s" server.name == "git"`, Bool, "Syntax error"},
		{`session.id == "s`, Bool, "Syntax error"},
		{`"x" && session.id == "s"`, Bool, "expected type 'bool' but found 'string'"},
		{`not has(arguments.a)`, Bool, "not is !"},
		{`session.id.matches("^\s")`, Bool, `in quotes, a backslash is written twice`},
		{`/src/shop`, Any, `a text stands in quotes within those of YAML, as in '"acme"'`},
		{`session.trust == "trust"`, Bool, `column 18: session.trust is never "trust"`},
		{`session.trust == "sandbox"`, Bool, `column 18: session.trust is never "sandbox": it is "direct" or "sandboxed"`},
		{`session.id == "s" && session.trust != 'Direct'`, Bool, `column 39: session.trust is never "Direct"`},
		{`has(arguments.x) && session.trust == "sandbox"`, Bool, `column 38: session.trust is never "sandbox"`},
		{"has(arguments.x) &&\n'sandbox' == session.trust", Bool, `line 2, column 1: session.trust is never "sandbox"`},
		{`session.trust in ["sandboxed", "trusted"]`, Bool, `column 32: session.trust is never "trusted"`},
		{`session`, Any, "yields an object with fields, not a JSON value"},
		{`duration("1s")`, Any, "yields a value of type"},
		{`{1: 2}`, Any, "yields a map, not a JSON value"},
		{`size(arguments)`, Bool, "yields a number"},
		{`session.id.matches("(")`, Bool, "column 20: the pattern is not a regular expression: missing closing ): `(`: write it in the syntax of RE2"},
		{`session.id.matches("a") && tool.name.matches("x(?=y)")`, Bool, "column 46: the pattern is not a regular expression: invalid or unsupported Perl syntax: `(?=`"},
		{`tool.name.matches("drop\b")`, Bool, "column 19: the pattern contains a backspace"},
		{`"(".matches("a(")`, Bool, "column 13: the pattern"},
		{`matches(session.id, "a(")`, Bool, "column 21: the pattern"},
		{`arguments.a.all(a, arguments.b.all(b, arguments.c.all(c, arguments.d.all(d, a + b + c == d))))`, Bool, "column 1: the expression could take too long: use fewer loops"},
		{`int("x") == 1`, Bool, "column 1: the expression cannot be planned: type conversion error"},
		{`[1][5] == 1`, Bool, "it reads nothing of a session or call"},
		{"session.id == \"\xff\"+\"\"", Bool, "not UTF-8"},
		{"'\xd9'", Any, "not UTF-8"},
		{`"` + strings.Repeat("x", maxSource) + `"`, Any, "longer than 16 KiB"},
		{strings.Repeat("!(", 100) + `session.id == ""` + strings.Repeat(")", 100), Bool, "column 1"},
		{`"` + strings.Repeat("x", maxSource) + `" + ""`, Any, "longer than 16 KiB"},
		{strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), Bool, "column"},
	} {
		_, err := Compile(test.src, test.want)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("Compile(%.60q) = %v; want an Error with %q", test.src, err, test.text)
		}
	}
}

// Unsuitable arguments cause errors that do not quote them.
func TestEvalErrors(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600)
	many := `{"list":[` + strings.Repeat("0,", maxValues) + "0]}"
	long := `{"list":[` + strings.Repeat("0,", 50_000) + "0]}"
	for _, test := range []struct {
		src, arguments string
		want           error
	}{
		{`arguments.x == "a"`, `{}`, ErrMissing},
		{`arguments.x.secret == "a"`, `{"x":{}}`, ErrMissing},
		{`arguments.x`, `{"x":"secret"}`, ErrType},
		{`arguments.x.startsWith("a")`, `{"x":1}`, ErrType},
		{`int(arguments.x) == 1`, `{"x":"secret"}`, ErrType},
		{`arguments.x[5] == 1`, `{"x":[1]}`, ErrMissing},
		{`has(arguments.x.y)`, `{"x":"{\"y\":true}"}`, ErrMissing},
		{`has(arguments.x.y)`, `{"x":null}`, ErrMissing},
		{`1 / arguments.x == 1`, `{"x":0}`, ErrEvaluation},
		{`arguments.x == 1`, `{"x":1e999}`, ErrArguments},
		{`arguments.x == 1`, `[1]`, ErrArguments},
		{`arguments.x == 1`, `{"x":1,"x":2}`, ErrArguments},
		{`arguments.x == 1`, `{"x":1,"\u0078":2}`, ErrArguments},
		{`arguments.x == 1`, `{"x":1`, ErrArguments},
		{`has(arguments.x)`, deep, ErrArguments},
		{`has(arguments.x)`, many, ErrArguments},
		{`arguments.list.all(x, arguments.list.all(y, x == y))`, long, ErrCost},
		{`session.id.matches(arguments.x)`, `{"x":"(secret"}`, ErrEvaluation},
	} {
		p, err := Compile(test.src, Bool)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
			continue
		}
		_, err = p.Eval(&Inputs{Arguments: []byte(test.arguments)})
		if !errors.Is(err, test.want) {
			t.Errorf("%s of %.40s: %v; want %v", test.src, test.arguments, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error contains an argument: %v", test.src, err)
		}
	}
}

// The cost limit alone stops a loop, even on a fast machine.
func TestCostLimit(t *testing.T) {
	p := compile(t, `arguments.list.all(x, arguments.list.exists(y, x == y))`, Bool)
	for n, want := range map[int]error{100: nil, 2000: ErrCost} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		in := &Inputs{Arguments: []byte(`{"list":[` + strings.Join(list, ",") + `]}`)}
		in.makeObjects(p.engine.types)
		_, _, err := p.engine.program.Eval((*activation)(in)) // without the time limit
		if err != nil {
			err = evalError(err)
		}
		if err != want {
			t.Errorf("%d elements: %v, want %v", n, err, want)
		}
	}
}

// A simple expression has the same result with and without the engine.
func TestSimpleAgreesWithCEL(t *testing.T) {
	for _, src := range []string{
		`session.trust == "direct"`, `session.trust != "direct"`, `!(session.trust != "direct")`,
		`"admin" in principal.roles`, `!("admin" in principal.roles)`, `"x" in principal.permissions`, `"records:read" in principal.permissions`,
		`"admin" in principal.roles && session.id == "s1" && server.name != "x"`,
		`"x" in principal.roles || session.id == "s2" || tool.name == "git_status"`,
		`'' == principal.user`, `principal.user == ''`, `session.workspace.id == "w1"`,
	} {
		fast := compile(t, src, Bool)
		slow, err := compileCEL(src, Bool)
		testkit.Check(t, err)
		for _, in := range []*Inputs{inputs(), {}} {
			a, err1 := fast.Eval(in)
			b, err2 := slow.Eval(in)
			if a.Bool != b.Bool || err1 != nil || err2 != nil {
				t.Errorf("%s: %v, %v and by CEL %v, %v", src, a, err1, b, err2)
			}
		}
		if fast.uses != slow.uses {
			t.Errorf("%s uses %b and by CEL %b", src, fast.uses, slow.uses)
		}
	}
}

func TestReadsArgument(t *testing.T) {
	for src, want := range map[string]bool{
		`has(arguments.a)`:                         true, // with what is a part of it
		`has(arguments.a.b)`:                       true,
		`arguments.a.b.c == 1`:                     true,
		`arguments.a == 1`:                         true,
		`arguments["a"]["b"] == 1`:                 true,
		`!("b" in arguments.a)`:                    true,
		`"c" in arguments.a`:                       false,
		`size(arguments) == 0`:                     true,
		`arguments[session.id] == 1`:               true,
		`arguments.exists(k, k == "b")`:            true,
		`has(arguments.b) && arguments.a.c == "x"`: false,
		`session.trust == "direct" && tool.annotations.readOnlyHint`: false,
		`session.trust == "direct"`:                                  false,
	} {
		p := compile(t, src, Bool)
		if got := p.ReadsArgument([]string{"a", "b"}); got != want {
			t.Errorf("%s reads a.b: %t", src, got)
		}
	}
}

func TestArgumentNames(t *testing.T) {
	for src, want := range map[string]string{
		`has(arguments.a.b) && arguments.a.c == "x" && "d" in arguments`: "[[a d] [b c]]",
		`size(arguments) == 0`:       "[]",
		`session.trust == "direct"`:  "[]",
		`arguments["a"][0].b == "x"`: "[[a] [[]] [b]]",
		`arguments.a.exists(x, has(x.b) && x.c.all(y, y.d[0].e == "" && session.id != x.f))`: "[[a] [[]] [b c f] [[]] [d] [[]] [e]]",
		`arguments.a.exists(k, k == "b")`: "[[a] [[]]]",
		// A computed name may be any text of the expression.
		`["b", "c"].exists(f, f in arguments)`:                            "[[[] b c]]",
		`["b", "c"].exists(f, f in arguments.a && arguments.a[f].d == 1)`: "[[a] [[] b c] [d]]",
		`arguments.exists(k, k == "b")`:                                   "[[[] b]]",
		`arguments[session.id] == 1`:                                      "[[[]]]",
		// A variable belongs to the innermost loop that defines its name.
		`arguments.a.all(x, x.b.all(x, x.c == 1) && x.b.all(x, x.c == 2) && x.b.all(x, x.c == 3) && x.b.all(x, x.c == 4))`: "[[a] [[]] [b] [[]] [c]]",
		`arguments.a.all(x, x.b == 1) && arguments.c.all(x, x.d.e == 1)`:                                                   "[[a c] [[]] [b d] [e]]",
		`arguments.a.filter(f, f.kind == "x").all(g, g.path.startsWith("/w"))`:                                             "[[a] [[]] [kind path]]",
		`arguments.a.map(x, x.b).exists(m, m.path == "x")`:                                                                 "[[a] [[]] [b] [path]]",
		`(has(arguments.a) ? arguments.a : []).exists(x, x.path == "x")`:                                                   "[[a] [[]] [path]]",
		`(arguments.a + arguments.b).exists(x, x.path == "x")`:                                                             "[[a b] [[]] [path]]",
		`[arguments.a, dyn(arguments.b)].exists(x, x.path == "x")`:                                                         "[[a b] [path]]",
		`[[arguments.a, arguments.b]].exists(x, x[0].path == "x")`:                                                         "[[a b] [path]]",
		`arguments.a.map(x, [x.b]).exists(m, m[0].path == "x")`:                                                            "[[a] [[]] [b] [path]]",
		`arguments.a.map(x, {"of": x.b}).exists(m, m.of.path == "x")`:                                                      "[[a] [[]] [b] [path]]",
		`"x" in [arguments.a.c, arguments.b]`:                                                                              "[[a b] [c]]",
		`arguments.a.map(x, x.b.c)[0].path == ""`:                                                                          "[[a] [[]] [b] [c] [path]]",
		`arguments.a.map(x, x.d, x.b).filter(y, y.c).exists(m, m.all(n, n.path == "x"))`:                                   "[[a] [[]] [b d] [[] c] [path]]",
		`arguments.a.map(x, x.b).map(y, y.c).exists(z, has(z.path))`:                                                       "[[a] [[]] [b] [c] [path]]",
		`[1].map(x, arguments.b).exists(m, m.path == "x")`:                                                                 "[[b] [path]]",
		`arguments.a.filter(f, f.kind == "x")[0].path == ""`:                                                               "[[a] [[]] [kind path]]",
	} {
		p := compile(t, src, Bool)
		names := p.ArgumentNames()
		for _, level := range names {
			slices.Sort(level)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("%s reads %s, want %s", src, got, want)
		}
	}
}

func TestUses(t *testing.T) {
	for src, want := range map[string]string{
		`session.id == "x"`:                                  "session",
		`session.trust == "direct"`:                          "principal session",
		`session.id.startsWith("x") && tool.name != "y"`:     "session",
		`tool.annotations.readOnlyHint`:                      "annotations",
		`tool.name.startsWith("x")`:                          "",
		`has(arguments.x)`:                                   "arguments",
		`"a" in principal.roles`:                             "principal reads session",
		`principal.roles.exists(arguments, arguments == "")`: "principal reads session",
		`[principal][0].tenant == "x"`:                       "principal reads session",
		`session.workspace.path == "/w"`:                     "session workspace",
		`has(session.workspace)`:                             "session workspace",
		`[session].exists(s, has(s.workspace.path))`:         "principal session workspace",
		`session.workspace.id == "x"`:                        "session",
		`true`:                                               "",
	} {
		p := compile(t, src, Bool)
		var got []string
		for _, u := range []struct {
			name string
			does bool
		}{{"annotations", p.UsesAnnotations()}, {"arguments", p.UsesArguments()}, {"principal", p.UsesPrincipal()}, {"reads", p.ReadsPrincipal()}, {"session", p.UsesSession()}, {"workspace", p.UsesWorkspace()}} {
			if u.does {
				got = append(got, u.name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s uses %v, want %s", src, got, want)
		}
	}
}

func TestNilProgramUsesNothing(t *testing.T) {
	var p *Program
	if p.UsesAnnotations() || p.UsesArguments() || p.UsesPrincipal() || p.ReadsPrincipal() || p.UsesSession() || p.NeedsEngine() || p.ReadsArgument([]string{"a"}) || p.ArgumentNames() != nil {
		t.Error("it uses something")
	}
}

func TestPathAndEngine(t *testing.T) {
	for src, want := range map[string]string{
		`principal.tenant`:          "principal.tenant false",
		` session.workspace.path `:  "session.workspace.path false",
		`principal.roles`:           "principal.roles false",
		`"x"`:                       " false",
		`"x" + "y"`:                 " false", // a constant: evaluated once
		`principal.tenant + ""`:     " true",
		`session.trust == "direct"`: " false",
		`session.trust == "direct" || has(arguments.x)`: " true",
	} {
		p := compile(t, src, Any)
		if got := fmt.Sprint(p.Path(), " ", p.NeedsEngine()); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}

// A copy of used inputs does not use the cache of the original.
func TestCopiedInputs(t *testing.T) {
	p := compile(t, `server.name + string(arguments.n)`, Any)
	in := inputs()
	p.Eval(in)
	other := *in
	other.Server = ""
	other.Arguments = []byte(`{"n":4}`)
	if got, err := p.Eval(&other); err != nil || string(got.JSON) != `"4"` {
		t.Errorf("a copy reads %q, %v", got.JSON, err)
	}
}

// A value made of an unknown fact is an error, unless the expression tests the fact.
func TestUnknownFact(t *testing.T) {
	for src, want := range map[string]string{
		`principal.tenant`:                                          "",
		`principal.user + "/" + principal.email`:                    "",
		`{"a": [principal.email]}`:                                  "",
		`principal.user == "bob" ? "b" : principal.email`:           "",
		`session.trust == "direct" ? session.workspace.path : "/"`:  "",
		`has(principal.email) ? principal.email : "none"`:           `"none"`,
		`principal.email == "" ? "none" : principal.email`:          `"none"`,
		`principal.email in ["", "x"] ? "none" : principal.email`:   `"none"`,
		`has(session.workspace) ? session.workspace.path : "none"`:  `"none"`,
		`principal.roles.size() == 0 ? "none" : principal.roles[0]`: `"none"`,
		`principal.user + "/" + server.name`:                        `"ada/"`,
		// A text that was made of a fact says nothing about the fact.
		`["/" + principal.tenant].filter(p, p != "/secret")[0]`:                  "",
		`[principal.tenant].map(t, "/" + t).exists(p, p == "/x") ? "a" : "b"`:    "",
		`["/x"].exists(p, p == "/" + principal.tenant) ? "/" : principal.tenant`: "",
	} {
		p := compile(t, src, Any)
		got, err := p.Eval(&Inputs{Context: &sessionstate.Context{Principal: &sessionstate.Principal{User: "ada"}}})
		if text := string(got.JSON); text != want || (want == "") != errors.Is(err, ErrUnknown) {
			t.Errorf("%s = %s, %v; want %q", src, text, err, want)
		}
	}
}

// Cleared inputs behave like new ones.
func TestClear(t *testing.T) {
	p := compile(t, `(has(principal.user) ? principal.user : "") + tool.name + server.name + string(arguments.n) + tool.annotations.title`, Any)
	in := inputs()
	in.Arguments, in.Annotations = []byte(`{"n":3}`), []byte(`{"title":"T"}`)
	if _, err := p.Eval(in); err != nil {
		t.Fatal(err)
	}
	if in.Clear(); !reflect.DeepEqual(in, new(Inputs)) {
		t.Errorf("not cleared: %+v", in)
	}
	in.Arguments = []byte(`{"n":4}`)
	if got, err := p.Eval(in); err != nil || string(got.JSON) != `"4"` {
		t.Errorf("cleared inputs read %q, %v", got.JSON, err)
	}
}

// A cached result is used only for the same session and server.
func TestRemembered(t *testing.T) {
	p := compile(t, `principal.roles.exists(r, r == "admin") && server.name.startsWith("g")`, Bool)
	of := func(role string) *sessionstate.Context {
		return &sessionstate.Context{Principal: &sessionstate.Principal{Roles: []string{role}}}
	}
	admin, guest := of("admin"), of("guest")
	for i, c := range []struct {
		context *sessionstate.Context
		server  string
		want    bool
	}{
		{admin, "git", true}, {admin, "git", true}, {guest, "git", false}, {admin, "git", true},
		{admin, "files", false}, {of("admin"), "git", true}, {nil, "git", false},
	} {
		if v, err := p.Eval(&Inputs{Context: c.context, Server: c.server}); err != nil || v.Bool != c.want {
			t.Errorf("%d: %v, %v; want %v", i, v.Bool, err, c.want)
		}
	}
	tool, err := Compile(`tool.name.startsWith("g")`, Bool)
	if err != nil || tool.readsNoCall() || !p.readsNoCall() {
		t.Errorf("%v: cached results of a program that reads a call: %v; of another: %v", err, tool.readsNoCall(), p.readsNoCall())
	}
}

func TestDependsOnAnnotations(t *testing.T) {
	for src, want := range map[string]bool{
		`tool.annotations.destructiveHint`:                                 true,
		`!tool.annotations.idempotentHint`:                                 true,
		`tool.annotations.title == "Set"`:                                  true,
		`has(tool.annotations.title) && true`:                              true,
		`has(tool.annotations)`:                                            true,
		`tool.annotations.title in ["a", "b"]`:                             true,
		`["a"].exists(x, x == tool.annotations.title)`:                     true,
		`tool.annotations.title.startsWith("x")`:                           true,
		`tool.annotations.destructiveHint && session.trust == "direct"`:    true,
		`tool.annotations.destructiveHint && session.trust == "sandboxed"`: false,
		`session.trust == "sandboxed" && tool.annotations.destructiveHint`: false,
		`tool.annotations.readOnlyHint || arguments.path == "/a"`:          false,
		`tool.annotations.readOnlyHint || arguments.path == "/b"`:          true,
		`tool.name == "b" && tool.annotations.readOnlyHint`:                false,
		`tool.name == "a" ? tool.annotations.readOnlyHint : true`:          true,
		`tool.name == "b" ? tool.annotations.readOnlyHint : true`:          false,
		`tool.name == "a"`: false,
	} {
		in := &Inputs{Tool: "a", Arguments: []byte(`{"path":"/a"}`), Context: &sessionstate.Context{Trust: sessionstate.Fact{Value: "direct", Source: sessionstate.Operator}}}
		p, err := Compile(src, Bool)
		testkit.Check(t, err)
		if got := p.DependsOnAnnotations(in); got != want {
			t.Errorf("%s: %t, want %t", src, got, want)
		}
	}
	if (*Program)(nil).DependsOnAnnotations(&Inputs{}) {
		t.Error("no condition depends on annotations")
	}
}
