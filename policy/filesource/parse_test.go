package filesource

import (
	"strings"
	"testing"
	"unicode"

	"github.com/attache-mcp/attache/policy"
)

// FuzzParse parses any bytes as a policy file. If they are accepted, the scope can be resolved.
// Otherwise each problem is one printable line with a place in the file.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"",
		"scope: acme/platform\nparent: acme\npolicies:\n  - {name: a, position: append, text: \"t\"}\ndrop: [b]\nobjectives:\n  - o\n",
		"scope: a\npolicies:\n  - name: n\n    position: prepend\n    text: |\n      two\n      lines\n",
		"\ufeff---\r\nscope: a\r\n...\r\n",
		"scope: a\n---\nscope: b\n",
		"scope: [\n", "scope: &a x\n", "? a\n: b\n", "{scope: a, scope: b}", "- a\n", "scope: 1\nx: y\n", "scope: \"\\u202e\"\n", "\xff",
		"policies: [{name: a}, 1, [], null]\nobjectives: {a: b}\n",
		"a: |2+\n  x\n", "a:\n\t- b\n", "\"a\\x\": b\n", "a: 'b''c'\n# d\n", "[[[]]]", "{a: {b: [c]}}", "scope: !!binary x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read, problems := parse("f.yaml", data)
		lines := 1 + strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n")
		usable := true
		for _, p := range problems {
			if p.Line < 0 || p.Line > lines+1 || p.Column < 0 {
				t.Errorf("%v has no place in %q", p, data)
			}
			if strings.ContainsFunc(p.String(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is not printable", p)
			}
			usable = usable && p.Warning
		}
		if !usable {
			return
		}
		read.scope.Parent = ""
		if _, err := policy.Resolve(map[string]policy.Scope{read.scope.Name: read.scope}, read.scope.Name); err != nil {
			t.Errorf("%q was accepted, but: %v", data, err)
		}
	})
}
