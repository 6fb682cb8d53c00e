package term

import (
	"bufio"
	"strings"
	"testing"
)

func TestFrame(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ name, before, after, want string }{
		{"same", `{"a":1}`, `{"a":1}`, "  {\"a\":1}\n"},
		{"member added", `{"a":{}}`, `{"a":{"b":1}}`, "  {\n-   \"a\": {}\n+   \"a\": {\n+     \"b\": 1\n+   }\n  }\n"},
		{"member removed", `{"a":1,"b":2}`, `{"b":2}`, "  {\n-   \"a\": 1,\n    \"b\": 2\n  }\n"},
		{"value changed", `{"a":1}`, `{"a":"x"}`, "  {\n-   \"a\": 1\n+   \"a\": \"x\"\n  }\n"},
		{"behind others", `[1,2,3,4,5]`, `[1,2,3,4,6]`, "  …\n    2,\n    3,\n    4,\n-   5\n+   6\n  ]\n"},
		{"text of lines", `"a"`, `"a\nb\\n"`, "- \"a\"\n+ \"a\n+ b\\\\n\"\n"},
		{"no JSON", `{`, `{}`, "- {\n+ {}\n"},
		{"long", `["` + long + `","b"]`, `["` + long + `","b"]`, "  [\"" + long[:75] + "…\n  \"b\"]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			p := Printer{Out: bufio.NewWriter(&out)}
			p.Frame([]byte(c.before), []byte(c.after))
			_ = p.Out.Flush() // to memory, cannot fail
			if out.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}
