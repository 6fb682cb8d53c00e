package setting

import "github.com/attache-mcp/attache/sessionstate/expression"

// formula is an expression in CEL that yields want. It is compiled when it is read, so
// that its mistakes are known before anything runs.
type formula struct {
	to   **expression.Program
	want expression.Type
}

// Expression returns a value that is an expression in CEL which yields want.
func Expression(to **expression.Program, want expression.Type) Scalar { return formula{to, want} }

func (v formula) Set(s, _ string) error {
	p, err := expression.Compile(s, v.want)
	if err == nil {
		*v.to = p
	}
	return err
}

func (v formula) String() string {
	if *v.to == nil {
		return ""
	}
	return (*v.to).String()
}

func (v formula) Schema() map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "description": "an expression that yields " + v.want.String()}
}
