package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

var check = testkit.Check

// compile compiles an expression and panics if it is invalid.
func compile(src string, want expression.Type) *expression.Program {
	p, err := expression.Compile(src, want)
	if err != nil {
		panic(err)
	}
	return p
}

func pin(argument, value string) Rule {
	return Rule{
		Name: "arguments[0]", Tools: []string{"list_*"}, Argument: strings.Split(argument, "."),
		Mode: Pin, Value: compile(value, expression.Any),
	}
}

// FuzzPin checks that three JSON readers find the value of a pin, whatever the client sent: one
// takes the first of two equal keys, one the last, and one ignores case.
func FuzzPin(f *testing.F) {
	for _, a := range []string{
		`{}`, `{"tenant":"globex"}`, `{"tenant":null}`, `{"Tenant":"globex"}`, `{"tenant":"acme","tenant":"globex"}`,
		`{"\u0074enant":"globex"}`, `{"tenant\u0000":"globex"}`, `{"ten\u0061nt":1,"tenant":2}`, `{"tenant" : {"tenant":"globex"}}`,
		`{"options":{"tenant":"globex"}}`, `{"options":{"tenant":"a","Tenant":"b"}}`, `{"options":[]}`, `{"options":null}`, `{"options":{}}`,
		`{"tenant":"acme"}`, `{"tenant":"\u0061cme"}`, `{"tEnant":"x","tenant":"acme"}`, `[]`, `""`, `{"a":"\ud800"}`, `{"ſ":1,"tenant":"y"}`,
		`{"n":1e999,"tenant":-1e999,"options":1e999}`, `{"options":{"tenant":` + strings.Repeat("9", 400) + `}}`,
	} {
		f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_repos","arguments":` + a + `}}`)
		f.Add(`{"jsonrpc":"2.0","method":"tools/call","params":{"arguments":` + a + `,"task":{"ttl":1},"name":"list_repos"}}`)
	}
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_repos"}}`)
	f.Fuzz(func(t *testing.T, frame string) {
		for _, path := range []string{"tenant", "options.tenant"} {
			fill := pin(path, `"globex"`) // listed first, but the pin applies
			fill.Mode = Fill
			b := newBench(t, fill, pin(path, "principal.tenant"))
			sent := ""
			b.next = func(m *wire.Message) { sent = string(m.Frame()) }
			b.m.Reset(wire.Client, []byte(frame))
			b.scanner.Look(&b.m)
			if !b.m.Plain() || !b.m.MethodIs("tools/call") || !b.m.Name().Equals("list_repos") {
				continue // refused by the relay, or not affected by the pin
			}
			b.run()
			if sent != "" {
				checkPinned(t, sent, path)
			}
		}
	})
}

func checkPinned(t *testing.T, sent, path string) {
	t.Helper()
	if first := gjson.Get(sent, "params.arguments."+path); first.Raw != `"acme"` {
		t.Errorf("the first %s is %s in %s", path, first.Raw, sent)
	}
	var last struct{ Params struct{ Arguments any } }
	d := json.NewDecoder(strings.NewReader(sent))
	d.UseNumber() // one of them may be larger than a float64
	if err := d.Decode(&last); err != nil {
		t.Fatalf("%s: %v", sent, err)
	}
	at := last.Params.Arguments
	for key := range strings.SplitSeq(path, ".") {
		o, _ := at.(map[string]any)
		at = o[key]
	}
	if at != "acme" {
		t.Errorf("the last %s is %v in %s", path, at, sent)
	}
	var folded struct {
		Params struct {
			Arguments struct {
				Tenant  any
				Options struct{ Tenant any }
			}
		}
	}
	_ = json.Unmarshal([]byte(sent), &folded) // other members may have types that do not fit
	if got := folded.Params.Arguments; path == "tenant" && got.Tenant != "acme" || path != "tenant" && got.Options.Tenant != "acme" {
		t.Errorf("ignoring case, %s is %v in %s", path, got, sent)
	}
}

// A rule that acts makes a note; a rule that does not makes one on request.
func TestNotes(t *testing.T) {
	when := compile(`arguments.kind == "x"`, expression.Bool)
	rule := func(i int, mode Mode, argument, value string) Rule {
		r := Rule{Name: fmt.Sprintf("arguments[%d]", i), Tools: []string{"list_*"}, Argument: []string{argument}, Mode: mode}
		if value != "" {
			r.Value = compile(value, expression.Any)
		}
		return r
	}
	rules := []Rule{
		rule(0, Fill, "workspace", "session.workspace.path"),
		rule(1, Pin, "tenant", "principal.tenant"),
		rule(2, Forbid, "force", ""),
		rule(3, Pin, "tenant", `"never"`),
		{Name: "arguments[4]", Tools: []string{"other"}, Argument: []string{"x"}, Mode: Forbid},
		{Name: "arguments[5]", Tools: []string{"list_*"}, Argument: []string{"page"}, Value: compile("arguments.size", expression.Any)},
		{Name: "arguments[6]", Tools: []string{"list_*"}, Argument: []string{"sort"}, Value: compile(`"x"`, expression.Any), When: when},
	}
	const skipped = `
skipped arguments[3]: another rule for the same argument counts
skipped arguments[4]: it is for other tools`
	for _, test := range []struct{ name, arguments, want string }{
		{"without the arguments", `{"kind":"y"}`, `
skipped arguments[2]: the call does not have the argument` + skipped + `
skipped arguments[6]: its condition does not hold
skipped arguments[5]: the session has no value for it
edited arguments[0]: the call lacked it, params.arguments.workspace: "" -> "/src/shop" (session.workspace.path from --workspace)
edited arguments[1]: the call lacked it, params.arguments.tenant: "" -> "acme" (principal.tenant from k1)`},
		{"with other values", `{"tenant":"globex","workspace":"/w","size":7}`, `
kept arguments[0]: the call's own value was kept, params.arguments.workspace: "/w" -> "/src/shop" (session.workspace.path from --workspace)
skipped arguments[2]: the call does not have the argument` + skipped + `
failed arguments[6]: it could not be decided: a member is read that is not there; test for it with has()
edited arguments[1]: the call's own value was overwritten, params.arguments.tenant: "globex" -> "acme" (principal.tenant from k1)
edited arguments[5]: the call lacked it, params.arguments.page: "" -> 7 (arguments.size)`},
		{"with a forbidden argument", `{"force":null}`, `
refused arguments[2]: the call has the argument, which is forbidden`},
		{"with the same values", `{"kind":"y","tenant":"acme","workspace":"/src/shop","page":1}`, `
skipped arguments[0]: the call has a value of its own
skipped arguments[2]: the call does not have the argument` + skipped + `
skipped arguments[5]: the call has a value of its own
skipped arguments[6]: its condition does not hold
skipped arguments[1]: the call has this value already`},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, rules...)
			var got strings.Builder
			b.listener = func(_ *middleware.Call, n middleware.Note) {
				fmt.Fprintf(&got, "\n%s %s: %s", n.Act, n.Rule, n.Why)
				if n.After != nil {
					before := string(n.Before)
					if before == "" {
						before = `""`
					}
					fmt.Fprintf(&got, ", %s: %s -> %s (%s)", strings.Join(n.Path, "."), before, n.After, n.Source)
				}
				if n.Layer != "arguments" {
					t.Errorf("a note of layer %q", n.Layer)
				}
			}
			var sent []string
			b.next = func(m *wire.Message) { sent = append(sent, string(m.Frame())) }
			frame := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":` + test.arguments + `}}` + "\n")
			b.handle(frame)
			if got.String() != test.want {
				t.Errorf("got %s\nwant %s", got.String(), test.want)
			}
			// The result is the same without a listener.
			b.listener = nil
			b.handle(frame)
			if len(sent) == 1 || len(sent) == 2 && sent[0] != sent[1] {
				t.Errorf("with a listener and without: %q", sent)
			}
		})
	}
}

// Rules whose arguments contain each other all hold, because pins are written last.
func TestNestedRules(t *testing.T) {
	for _, test := range []struct{ name, call, want string }{
		{"fill inside a pin", `{}`, `{"o":{"b":1,"a":"pinned"}}`},
		{"the call has all", `{"o":{"a":"x","c":"y"}}`, `{"o":{"b":1,"a":"pinned"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pinInner := pin("o.a", `"pinned"`)
			pinOuter := pin("o", `{"b": 1}`)
			fill := pin("o.c", `"filled"`)
			fill.Mode = Fill
			b := newBench(t, pinInner, fill, pinOuter)
			b.next = func(m *wire.Message) {
				if got := string(m.Arguments().Raw); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			}
			b.handle([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":` + test.call + `}}`))
		})
	}
}

// A name with a dot is not the path of a nested argument: a rule for one does not decide about the other.
func TestNameWithADot(t *testing.T) {
	dotted := pin("x", `"acme"`)
	dotted.Argument = []string{"o.p"}
	b := newBench(t, pin("o.p", `"acme"`), dotted)
	sent := ""
	b.next = func(m *wire.Message) { sent = string(m.Arguments().Raw) }
	b.m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_repos","arguments":{"o":{"p":1},"o.p":2}}}`))
	b.scanner.Look(&b.m)
	b.run()
	if want := `{"o":{"p":"acme"},"o.p":"acme"}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
}

// A fill rule with a value from the principal is a pin, also without a configuration file.
func TestFillFromPrincipalPins(t *testing.T) {
	r := pin("workspace", "principal.tenant")
	r.Mode = Fill
	shared, err := Compile(Options{Rules: []Rule{r}})
	if err != nil || !shared.Connect(ConnOptions{}).Layer().Enforces {
		t.Errorf("the layer does not enforce: %v", err)
	}
	b := newBench(t, r)
	b.next = func(m *wire.Message) {
		if got := string(m.Arguments().Raw); got != `{"workspace":"acme"}` {
			t.Errorf("got %s", got)
		}
	}
	b.handle([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"workspace":"globex"}}}`))
}

// If a rule cannot be evaluated, the call is refused if the rule enforces, and passes if it fills.
func TestUndecided(t *testing.T) {
	failed := errors.New("key file is gone")
	condition := compile(`principal.user != ""`, expression.Bool)
	for _, test := range []struct {
		name string
		rule Rule
		view *sessionstate.Context
		tool string
		want string // the arguments that are sent, "" if the call is refused
	}{
		{"failed condition, forbid", Rule{Mode: Forbid, When: compile("arguments.x == 1", expression.Bool)}, nil, "list_a", ""},
		{"failed condition, fill", Rule{Value: compile(`"v"`, expression.Any), When: compile("arguments.x == 1", expression.Bool)}, nil, "list_a", `{"a":1}`},
		{"failed lookup of the principal", Rule{Mode: Pin, Value: compile(`"v"`, expression.Any), When: condition},
			&sessionstate.Context{Unidentified: failed}, "list_a", ""},
		{"condition without a principal", Rule{Mode: Pin, Value: compile(`"v"`, expression.Any), When: condition},
			&sessionstate.Context{}, "list_a", `{"a":1}`},
		{"value without a principal", Rule{Mode: Pin, Value: compile(`"t-" + principal.tenant`, expression.Any)},
			&sessionstate.Context{}, "list_a", ""},
		{"value with the operator's user and a refused credential", Rule{Mode: Pin, Value: compile(`principal.user + "/" + principal.tenant`, expression.Any)},
			&sessionstate.Context{Principal: &sessionstate.Principal{User: "ada"}, Unidentified: failed}, "list_a", ""},
		{"value of an unknown fact, fill", Rule{Value: compile(`session.workspace.path + "/src"`, expression.Any)},
			&sessionstate.Context{}, "list_a", `{"a":1}`},
		{"an empty value", Rule{Mode: Pin, Value: compile(`[session.id].filter(s, s != "")`, expression.Any)},
			&sessionstate.Context{}, "list_a", ""},
		{"failed value", Rule{Mode: Pin, Value: compile(`["a"][int(session.id)]`, expression.Any)},
			&sessionstate.Context{}, "list_a", ""},
		{"a name that is too long to match", Rule{Tools: []string{"*a*b"}, Mode: Forbid}, nil, strings.Repeat("a", 5000), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.rule.Argument = []string{"tenant"}; test.rule.Tools == nil {
				test.rule.Tools = []string{"*"}
			}
			b := newBench(t, test.rule)
			b.view = test.view
			sent := ""
			b.next = func(m *wire.Message) { sent = string(m.Arguments().Raw) }
			b.handle([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + test.tool + `","arguments":{"a":1}}}`))
			if sent != test.want {
				t.Errorf("sent %q, want %q", sent, test.want)
			}
		})
	}
}

// Overwriting a value does not allocate once the buffers have grown.
func TestPinAllocations(t *testing.T) {
	for _, test := range []struct {
		name, line string
		most       float64
	}{
		{"the same value", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"page":1,"workspace":"acme"}}}`, 0},
		{"another value", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"page":1,"workspace":"globex"}}}`, 0},
	} {
		b := newBench(t, pin("workspace", "principal.tenant"))
		line := []byte(test.line + "\n")
		b.handle(line)
		if n := testing.AllocsPerRun(200, func() { b.handle(line) }); n > test.most {
			t.Errorf("%s: %v allocations, at most %v", test.name, n, test.most)
		}
	}
}

// The second round of a call gets the pinned values of the first round, and of no other call.
func TestRounds(t *testing.T) {
	ada := sessionstate.Principal{KeyID: "k1", User: "ada", Tenant: "acme", Email: "first"}
	renamed := ada
	renamed.Email = "second"
	moved, bob, fewer, sandboxed := renamed, renamed, renamed, renamed
	moved.Tenant, bob.User = "globex", "bob"
	ada.Roles, renamed.Roles, sandboxed.Roles = []string{"admin"}, []string{"admin"}, []string{"admin"}
	sandboxed.Trust = "sandboxed"
	for _, test := range []struct {
		name, session string
		principal     sessionstate.Principal
		want          string
	}{
		{"the same", "s", ada, `"first"`},
		{"the same with a new address", "s", renamed, `"first"`},
		{"another tenant", "s", moved, `"second"`},
		{"another user", "s", bob, `"second"`},
		{"fewer roles", "s", fewer, `"second"`},
		{"less trust", "s", sandboxed, `"second"`},
		{"another session", "other", renamed, `"second"`},
		{"another tool", "s", renamed, `"second"`},
	} {
		for _, more := range []string{`,"inputResponses":{}`, `,"inputResponses":{},"requestState":"r/1"`} {
			t.Run(test.name+more, func(t *testing.T) {
				const frame = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"tenant":"x"}MORE}}`
				b := newBench(t, pin("tenant", "principal.email"))
				b.view = modern("s", &ada)
				b.handle([]byte(strings.Replace(frame, "MORE", "", 1)))
				b.reply(t, `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","requestState":"r\/1"}}`) // as PHP writes it
				b.view = modern(test.session, &test.principal)
				b.next = func(m *wire.Message) {
					if got := string(m.Arguments().Get("tenant").Raw); got != test.want {
						t.Errorf("the second round has %s, want %s", got, test.want)
					}
				}
				second := strings.Replace(frame, "MORE", more, 1)
				if test.name == "another tool" {
					second = strings.Replace(second, "list_repos", "list_all", 1)
				}
				b.handle([]byte(second))
			})
		}
	}
}

func modern(session string, p *sessionstate.Principal) *sessionstate.Context {
	return &sessionstate.Context{Modern: true, Session: sessionstate.Fact{Value: session}, Principal: p}
}
