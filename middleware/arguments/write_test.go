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

// FuzzWriteAll writes the values of several rules in one edit and one by one, and compares the
// bytes.
func FuzzWriteAll(f *testing.F) {
	for _, arguments := range []string{
		`{}`, `{ }`, `{"a":1}`, `{"tenant":"globex"}`, `{"tenant":"acme"}`, `{"workspace":"","tenant":null}`, `{"count":7 , "x":[{}] }`,
		`{"\u0074enant":"x","Tenant":"y"}`, `{"tenant":"x","count":7,"workspace":"/w"}`, `[]`, `null`, `{"o":{"a":1}}`, `{"o":null}`, `{"o":1}`,
	} {
		f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + arguments + `}}`)
		f.Add(`{"params":{"arguments":` + arguments + `,"name":"t","_meta":{}},"method":"tools/call","jsonrpc":"2.0"}`)
	}
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	f.Fuzz(func(t *testing.T, frame string) {
		for _, paths := range []string{"workspace tenant count", "tenant", "tenant o.a", "count o.b o.c"} {
			oneByOne := pins(t, paths)
			oneByOne.overlap = true // as if one argument were inside another
			once, each := sent(t, pins(t, paths), frame), sent(t, oneByOne, frame)
			if once != each {
				t.Errorf("%s: in one edit\n%s, one by one\n%s", paths, once, each)
			}
		}
	})
}

// A call does not use the values of the call before.
func TestCallsDoNotShareValues(t *testing.T) {
	const paths = "tenant workspace count"
	a := pins(t, paths)
	for _, arguments := range []string{
		`{"x":1,"tenant":"globex","count":1}`, `{}`, `{"count":22,"workspace":"/w"}`, `{"tenant":null}`, `{"text":"` + strings.Repeat("a", 100) + `"}`,
	} {
		frame := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + arguments + `}}`
		if got, want := sent(t, a, frame), sent(t, pins(t, paths), frame); got != want {
			t.Errorf("%s is sent as\n%s, alone as\n%s", arguments, got, want)
		}
	}
}

// pins returns a layer with rules that pin the paths.
func pins(t *testing.T, paths string) *Conn {
	t.Helper()
	values := map[string]string{"workspace": workspacePath, "tenant": "principal.tenant"}
	var rules []Rule
	for path := range strings.FieldsSeq(paths) {
		source := values[path]
		if source == "" {
			source = "7"
		}
		rules = append(rules, Rule{Tools: []string{"*"}, Argument: strings.Split(path, "."), Mode: Pin, Value: compile(source, expression.Any)})
	}
	shared, err := Compile(Options{Rules: rules})
	check(t, err)
	return shared.Connect(ConnOptions{})
}

// sent returns the frame that is sent to the server, "" if the call is refused.
func sent(t *testing.T, c *Conn, frame string) (out string) {
	t.Helper()
	handler := c.Layer().Wrap(func(_ context.Context, m *wire.Message) error {
		out = string(m.Line())
		return nil
	})
	scanner := wire.Scanner{ArgumentNames: c.Layer().ArgumentNames}
	var m wire.Message
	m.Reset(wire.Client, []byte(frame))
	if scanner.Look(&m); !m.Plain() {
		return "" // no layer sees such a frame
	}
	call := new(relayed.Call)
	call.SetValue(sessionstate.ContextKey{}, &sessionstate.Context{
		Workspace: sessionstate.Fact{Value: "/src/\"shop\"", Source: sessionstate.Operator},
		Principal: &sessionstate.Principal{Tenant: "acme"},
	})
	check(t, handler(&relayed.Context{Context: t.Context(), Call: call}, &m))
	return out
}

// A fact is read again if the view has changed.
func TestReadFacts(t *testing.T) {
	r := newRule(Rule{Argument: []string{"tenant"}, Mode: Pin, Value: compile("principal.tenant", expression.Any)})
	var member factMember
	acme := &sessionstate.Context{Principal: &sessionstate.Principal{Tenant: "acme"}}
	for i, test := range []struct {
		view *sessionstate.Context
		want string
	}{
		{nil, ""},
		{acme, `,"tenant":"acme"`},
		{acme, `,"tenant":"acme"`},
		{acme.WithPrincipal(&sessionstate.Principal{Tenant: "a\"b"}), `,"tenant":"a\"b"`},
		{acme.WithPrincipal(nil), ""},
		{acme, `,"tenant":"acme"`},
		{nil, ""},
	} {
		got := ""
		if k := r.read(test.view, &member); k != nil {
			got = string(k.text)
		}
		if got != test.want {
			t.Errorf("reading %d is %s, want %s", i, got, test.want)
		}
	}
}
