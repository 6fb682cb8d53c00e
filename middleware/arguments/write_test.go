package arguments

import (
	"context"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// FuzzWriteAll has the values of several rules written in one edit and one by one:
// what goes on is the same, byte for byte.
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
			once, each := sent(t, frame, paths, false), sent(t, frame, paths, true)
			if once != each {
				t.Errorf("%s: in one edit\n%s, one by one\n%s", paths, once, each)
			}
		}
	})
}

// sent returns the frame as it goes on, "" if the call is refused, with rules that
// pin the paths.
func sent(t *testing.T, frame, paths string, oneByOne bool) (out string) {
	t.Helper()
	values := map[string]string{"workspace": workspacePath, "tenant": "principal.tenant"}
	var rules []Rule
	for _, path := range strings.Fields(paths) {
		source := values[path]
		if source == "" {
			source = "7"
		}
		value, err := expression.Compile(source, expression.Any)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, Rule{Tools: []string{"*"}, Argument: strings.Split(path, "."), Mode: Pin, Value: value})
	}
	a := New(Options{Rules: rules})
	a.overlap = oneByOne // as where one may be inside another
	handler := a.Layer().Wrap(func(_ context.Context, m *wire.Message) error {
		out = string(m.Line())
		return nil
	})
	scanner := wire.Scanner{ArgumentNames: a.Names()}
	var m wire.Message
	m.Reset(wire.Client, []byte(frame))
	scanner.Look(&m)
	call := new(middleware.Call)
	call.SetValue(sessionstate.ContextKey{}, &sessionstate.Context{
		Workspace: sessionstate.Fact{Value: "/src/\"shop\"", Source: sessionstate.Operator},
		Principal: &sessionstate.Principal{Tenant: "acme"},
	})
	if err := handler(&middleware.Context{Context: t.Context(), Call: call}, &m); err != nil {
		t.Fatal(err)
	}
	return out
}

// A view that says something else is read afresh, and so is one that says less.
func TestReadings(t *testing.T) {
	value, err := expression.Compile("principal.tenant", expression.Any)
	if err != nil {
		t.Fatal(err)
	}
	r := newRule(0, Rule{Argument: []string{"tenant"}, Mode: Pin, Value: value})
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
		if k := r.read(test.view); k != nil {
			got = string(k.member)
		}
		if got != test.want {
			t.Errorf("reading %d is %s, want %s", i, got, test.want)
		}
	}
}
