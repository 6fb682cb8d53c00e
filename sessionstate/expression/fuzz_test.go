package expression

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
)

// No expression and arguments cause a panic or an unknown error. Results are valid JSON, and
// those of simple expressions are the same as in CEL.
func FuzzExpression(f *testing.F) {
	for _, src := range []string{
		`session.trust == "direct"`, `!("admin" in principal.roles) && server.name != 'x'`, `"a"`, `principal.roles`,
		`has(arguments.path) && arguments.path.startsWith("/")`, `arguments.list.all(x, x == "a")`, `{"a": [1, arguments.n]}`,
		`tool.annotations.title + string(arguments.n)`, `arguments.?a`, `"""`, `!(!(`, `[1][2]`, `session.id.matches(arguments.path)`,
	} {
		f.Add(src, inputs().Arguments)
	}
	for _, n := range []int{64, 65, 500} { // around the limits of nesting and length
		f.Add(strings.TrimSuffix(strings.Repeat(`"x" in principal.roles || `, n), " || "), []byte("{}"))
		f.Add(strings.Repeat("(", n)+"session.id"+strings.Repeat(")", n), []byte("{}"))
	}
	f.Add(`session.id == "`+strings.Repeat("x", maxSource-len(`session.id == ""`))+`"`, []byte("{}"))
	f.Add(`arguments.x == 1`, []byte(`{"x":1e999,"y":"\ud800"}`))
	f.Fuzz(func(t *testing.T, src string, arguments []byte) {
		for _, want := range []Type{Bool, Any} {
			p, err := Compile(src, want)
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
					t.Fatalf("%q: %v is not an Error with a place", src, err)
				}
				continue
			}
			in := inputs()
			in.Arguments = arguments
			got, err := p.Eval(in)
			switch {
			case err != nil && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrType) && !errors.Is(err, ErrCost) &&
				!errors.Is(err, ErrArguments) && !errors.Is(err, ErrEvaluation):
				t.Fatalf("%q: an unknown error: %v", src, err)
			case err == nil && want == Any && !json.Valid(got.JSON):
				t.Fatalf("%q: not JSON: %s", src, got.JSON)
			}
			if p.simple == nil {
				continue
			}
			slow, err := compileCEL(src, want)
			if err != nil {
				t.Fatalf("%q is simple, but not CEL: %v", src, err)
			}
			if by, err := slow.Eval(in); err != nil || by.Bool != got.Bool || string(by.JSON) != string(got.JSON) {
				t.Fatalf("%q: %v, but with CEL %v, %v", src, got, by, err)
			}
		}
	})
}

// FuzzDecode compares the decoder with encoding/json on valid JSON. Bytes that are not UTF-8 are not
// valid, but encoding/json reads each as U+FFFD, so that two names become one.
func FuzzDecode(f *testing.F) {
	f.Add(inputs().Arguments)
	f.Add([]byte(` { "a" : [ -0 , 1.5e-3 , "\\\"" , { } ] } `))
	f.Add([]byte(`{"a":1,"\u0061":2}`))
	f.Add([]byte("{\"\xfc\":1,\"\xa4\":2}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		members, err := decodeObject(raw)
		var want map[string]any
		if !utf8.Valid(raw) || json.Unmarshal(raw, &want) != nil || want == nil || err != nil {
			return // callers pass only valid JSON
		}
		if len(members) != len(want) {
			t.Fatalf("%q: %d members, want %d", raw, len(members), len(want))
		}
		out, err := toValue(types.NewStringInterfaceMap(types.DefaultTypeAdapter, members), Any)
		var got map[string]any
		if err != nil || json.Unmarshal(out.JSON, &got) != nil {
			t.Fatalf("%q encodes to %q", raw, out.JSON)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("%q: %s, want %s", raw, a, b)
		}
	})
}
