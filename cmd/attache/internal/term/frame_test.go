package term

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

func TestFrame(t *testing.T) {
	long := `"` + strings.Repeat("x", 100) + `"`
	for _, c := range []struct{ name, before, after, want string }{
		{"equal", `{"a":1}`, `{"a":1}`, "  {\"a\":1}\n"},
		{"only member added", `{"a":{}}`, `{"a":{"b":1}}`, "  {\"a\":{\n+ \"b\":1\n  }}\n"},
		{"member appended", `{"a":1}`, `{"a":1,"b":2}`, "  {\"a\":1\n+ ,\"b\":2\n  }\n"},
		{"member removed", `{"a":1,"b":2}`, `{"a":1}`, "  {\"a\":1\n- ,\"b\":2\n  }\n"},
		{"value changed", `{"a":1,"b":2}`, `{"a":3,"b":2}`, "  {\n- \"a\":1\n+ \"a\":3\n  ,\"b\":2}\n"},
		{"escapes, brackets and commas in a text", `{"a\"b":"x,\"}]"}`, `{"a\"b":"x,\"}]","c":","}`, "  {\"a\\\"b\":\"x,\\\"}]\"\n+ ,\"c\":\",\"\n  }\n"},
		{"far from both ends", `[1,2,3,4,5,6,7,8,9]`, `[1,2,3,4,6,7,8,9]`, "  …,2,3,4\n- ,5\n  ,6,7,8…\n"},
		{"two changes", `[1,2,3,4,5,6,7,8,9]`, `[0,2,3,4,5,6,7,8]`, "  [\n- 1\n+ 0\n  ,2,3,4\n  …,6,7,8\n- ,9\n  ]\n"},
		{"a text of several lines", `[]`, `["a\nb c\n"]`, "  [\n+ \"a\n+ b c\n+ \"\n  ]\n"},
		{"more than a line", `[` + long + `,` + long + `]`, `[` + long + `,` + long + `]`,
			"  [\n  \"" + strings.Repeat("x", 76) + "…\n  ,\"" + strings.Repeat("x", 75) + "…\n  ]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			p := &Printer{Out: bufio.NewWriter(&got)}
			p.Frame([]byte(c.before), []byte(c.after))
			p.Out.Flush()
			if got.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), c.want)
			}
			if joined := strings.Join(pieces([]byte(c.after)), ""); joined != c.after {
				t.Errorf("the pieces are %s", joined)
			}
		})
	}
}
