package setting

import "github.com/attache-mcp/attache/sessionstate/expression"

// Expression returns a value that is a CEL expression of type want. It is compiled when it is read,
// so that mistakes are reported before anything runs.
func Expression(to **expression.Program, want expression.Type) Scalar {
	return scalar{
		set: func(s, _ string) error {
			p, err := expression.Compile(s, want)
			if err == nil {
				*to = p
			}
			return err
		},
		text: func() string {
			if *to == nil {
				return ""
			}
			return (*to).String()
		},
		schema: map[string]any{"type": "string", "minLength": 1, "description": "an expression that yields " + want.String()},
	}
}
