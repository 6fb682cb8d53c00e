package arguments

import (
	"context"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A computed value is written as JSON, also if it reads the principal.
func TestComputedValues(t *testing.T) {
	for value, want := range map[string]string{
		`"t-" + principal.tenant`: `"t-acme"`,
		`[principal.tenant, "x"]`: `["acme","x"]`,
		`{"a": 1}`:                `{"a":1}`,
	} {
		b := newBench(t, pin("tenant", value))
		b.next = func(m *wire.Message) {
			if got := string(m.Arguments().Get("tenant").Raw); got != want {
				t.Errorf("%s: got %s, want %s", value, got, want)
			}
			want = ""
		}
		b.handle([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"tenant":"globex"}}}`))
		if want != "" {
			t.Errorf("%s: the call was refused", value)
		}
	}
}

// answerRelay records the answers of a layer.
type answerRelay struct {
	relayed.Relay
	answers []string
}

func (r *answerRelay) Answer(_ context.Context, reply *wire.Message) error {
	r.answers = append(r.answers, string(reply.Line()))
	return nil
}

// A refused request is answered, and a refused notification is dropped. The answer names the
// missing fact.
func TestRefusalIsAnswered(t *testing.T) {
	for _, test := range []struct{ value, id, want string }{
		{"principal.email", `"id":7,`, "it is taken from principal.email"},
		{`"t-" + principal.email`, `"id":7,`, "its value could not be determined"},
		{`has(principal.email) ? "t-" + principal.email : "t"`, `"id":7,`, ""},
		{`principal.email == "" ? "t" : principal.email`, `"id":7,`, ""},
		{`[principal.email].filter(s, s != "")`, `"id":7,`, "its value could not be determined"},
		{"principal.email", "", ""},
	} {
		b := newBench(t, pin("tenant", test.value))
		relay := &answerRelay{}
		b.m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0",`+test.id+`"method":"tools/call","params":{"name":"list_repos","arguments":{}}}`))
		b.scanner.Look(&b.m)
		b.ctx.Call.Reset(relay, test.id != "")
		b.ctx.Call.SetValue(sessionstate.ContextKey{}, b.view)
		check(t, b.handler(&b.ctx, &b.m))
		if got := strings.Join(relay.answers, ""); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: answered %q, want %q", test.value, test.id, got, test.want)
		}
	}
}

// The schema lets the model omit an argument only while there is a value for it.
func TestOptionalOnlyWithValue(t *testing.T) {
	const required, optional = `"required":["workspace"]`, `"type":"object"`
	full := &sessionstate.Context{Session: sessionstate.Fact{Value: "s1", Source: sessionstate.Operator}, Modern: true}
	for _, test := range []struct {
		name, value, when string
		want              bool // the argument is still required
	}{
		{"computed", `"w-" + session.id`, "", false},
		{"computed, empty", `[session.id].filter(s, s != "s1")`, "", true},
		{"a condition that is true", `"w-" + session.id`, `session.id == "s1"`, false},
		{"a condition that is false", `"w-" + session.id`, `session.id == "s2"`, true},
		{"a condition that fails", `"w-" + session.id`, `[session.id][1] == "s1"`, true},
		{"a fact", "session.id", "", false},
		{"an unknown fact", "session.workspace.path", "", true},
	} {
		r := Rule{Name: "arguments[0]", Tools: []string{"list_*"}, Argument: []string{"workspace"}, Value: compile(test.value, expression.Any)}
		if test.when != "" {
			r.When = compile(test.when, expression.Bool)
		}
		b := newBench(t, r)
		b.view = full
		b.handle([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"))
		line := b.reply(t, strings.Replace(benchList, `"result":{`, `"result":{"cacheScope":"public",`, 1))
		if got := strings.Contains(line, required); got != test.want || !strings.Contains(line, optional) {
			t.Errorf("%s: required %v, want %v: %s", test.name, got, test.want, line)
		}
		if private := strings.Contains(line, `"cacheScope":"private"`); private == test.want && test.when == "" {
			t.Errorf("%s: the list is private: %v: %s", test.name, private, line)
		}
	}
}
