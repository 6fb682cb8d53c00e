package expression

import (
	"errors"
	"testing"

	"github.com/attache-mcp/attache/sessionstate"
)

// TestGuards compares a condition with guards with the engine, for inputs that make each operand
// true, false or an error.
func TestGuards(t *testing.T) {
	ada := &sessionstate.Context{
		Workspace: sessionstate.Fact{Value: "/src"},
		Principal: &sessionstate.Principal{Tenant: "acme", Roles: []string{"admin", "dev"}},
	}
	contexts := []*sessionstate.Context{nil, ada}
	arguments := []string{
		``, `{}`, `{"path":"/src/a"}`, `{"path":null}`, `{"path":7}`, `{"p\u0061th":"/src/a"}`, `{"x":{"path":1}}`,
		`{ "x" : [ {"path":1}, "}" , "\"" ] , "path" : "/etc" }`, `{"x":"\\","path":{}}`, `{"x":1,"n":-2.5e3}`, `{"a b":true}`,
		`{"a/b":1}`, `{"a\/b":1}`,
	}
	for _, c := range []struct {
		src    string
		guards int
	}{
		{`has(arguments.path) && session.trust == "direct"`, 2},
		{`session.trust == "sandboxed" && has(arguments.x)`, 2},
		{`has(arguments.path) && !arguments.path.startsWith(session.workspace.path)`, 1},
		{`arguments.path == "/src/a" && principal.tenant.startsWith("a")`, 1},
		{`principal.tenant.startsWith("a") && has(arguments.path) && has(arguments.x)`, 3},
		{`principal.roles.exists(r, r == "admin") && has(arguments.path)`, 1},
		{`(has(arguments.path) && tool.name == "t") && server.name != ""`, 2},
		{`has(arguments.path) || has(arguments.x)`, 0},
		{`has(arguments.path.x) && has(arguments.x)`, 1},
		{`!has(arguments.path) && has(arguments.x)`, 1},
		{`has(arguments.path)`, 0},
		{"has(arguments.`a/b`) && tool.name == \"t\"", 1},
	} {
		p := compile(t, c.src, Bool)
		if len(p.guards) != c.guards {
			t.Errorf("%s: %d guards; want %d", c.src, len(p.guards), c.guards)
		}
		for _, view := range contexts {
			for _, raw := range arguments {
				in := func() *Inputs { return &Inputs{Context: view, Tool: "t", Server: "s", Arguments: []byte(raw)} }
				want, wantErr := p.engine.eval(in(), Bool)
				got, err := p.Eval(in())
				if got.Bool != want.Bool || !errors.Is(err, wantErr) {
					t.Errorf("%s of %s: %v, %v; the engine says %v, %v", c.src, raw, got.Bool, err, want.Bool, wantErr)
				}
			}
		}
	}
}

// A literal has the same value with and without the engine. If CEL and JSON may differ, the
// engine compiles it.
func TestLiterals(t *testing.T) {
	for src, taken := range map[string]bool{
		`["agent"]`: true, ` [ "a" , [ 1 , -20, 0 ], true, null, "ä, [}" ] `: true, `[]`: true, `7`: true, `false`: true, `null`: true,
		`["a\\n"]`: false, `{"a":1}`: false, `[1.5]`: false, `[1e3]`: false, `[-0]`: false, `[1234567890123456]`: false,
		`[principal.user]`: false, `[1] + [2]`: false, `[1,]`: false, `["a" "b"]`: false, `['a']`: false,
	} {
		v, ok := parseLiteral(src)
		if ok != taken {
			t.Errorf("%s: is a literal: %v", src, ok)
		}
		p, err := compileCEL(src, Any)
		switch {
		case !ok:
		case err != nil:
			t.Errorf("%s: the engine refuses it: %v", src, err)
		case string(p.fixed.JSON) != string(v):
			t.Errorf("%s: %s; the engine says %s", src, v, p.fixed.JSON)
		}
	}
}
