package term

import (
	"strings"
	"testing"
)

// What is shown without the "+" lines is the one frame, without the "-" lines the
// other, byte for byte.
func TestDemoDiffIsExact(t *testing.T) {
	for _, c := range []struct{ name, before, after, marked string }{
		{"equal", `{"a":1}`, `{"a":1}`, ` {"a":1}`},
		{"only member added", `{"a":{}}`, `{"a":{"b":1}}`, ` {"a":{ + "b":1 } }`},
		{"member appended", `{"a":1}`, `{"a":1,"b":2}`, ` { "a":1 + ,"b":2 }`},
		{"two appended", `{"a":1}`, `{"a":1,"b":2,"c":3}`, ` { "a":1 + ,"b":2, "c":3 }`},
		{"member put in front", `{"a":1}`, `{"b":2,"a":1}`, ` { + "b":2, "a":1 }`},
		{"member put between", `{"a":1,"c":3}`, `{"a":1,"b":2,"c":3}`, ` { "a":1, + "b":2, "c":3 }`},
		{"last member removed", `{"a":1,"b":2}`, `{"a":1}`, ` { "a":1 - ,"b":2 }`},
		{"first member removed", `{"a":1,"b":2}`, `{"b":2}`, ` { - "a":1, "b":2 }`},
		{"only member removed", `{"a":1}`, `{}`, ` { - "a":1 }`},
		{"value changed", `{"a":1,"b":2}`, `{"a":3,"b":2}`, ` { - "a":1, + "a":3, "b":2 }`},
		{"last value changed", `{"b":2,"a":1}`, `{"b":2,"a":"x"}`, ` { "b":2, - "a":1 + "a":"x" }`},
		{"another kind", `{"a":[1]}`, `{"a":{"b":1}}`, ` { - "a":[1] + "a":{"b":1} }`},
		{"last renamed", `{"a":1,"b":2}`, `{"a":1,"c":2}`, ` { "a":1, - "b":2 + "c":2 }`},
		{"element put in front", `[{"t":1}]`, `[{"t":0},{"t":1}]`, ` [ + {"t":0}, {"t":1} ]`},
		{"element edited", `[{"n":"x"},{"n":"y","r":[1]}]`, `[{"n":"x"},{"n":"y"}]`, ` [ {"n":"x"}, { "n":"y" - ,"r":[1] } ]`},
		{"element removed", `[1,2,3]`, `[1,3]`, ` [ 1, - 2, 3 ]`},
		{"escapes and commas", `{"a\"b":"x,\"}]"}`, `{"a\"b":"x,\"}]","c":","}`, ` { "a\"b":"x,\"}]" + ,"c":"," }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := Diff([]byte(c.before), []byte(c.after))
			if got := flatten(nodes, added); got != c.before {
				t.Errorf("before: got  %s\n        want %s", got, c.before)
			}
			if got := flatten(nodes, removed); got != c.after {
				t.Errorf("after: got  %s\n       want %s", got, c.after)
			}
			var marked strings.Builder
			for _, l := range new(Layout).frame(nodes) {
				marked.WriteString(string(rune(l.op)) + " " + l.text)
			}
			squeeze := strings.NewReplacer(" ", "")
			if got, want := squeeze.Replace(marked.String()), squeeze.Replace(c.marked); got != want {
				t.Errorf("shown as %s, want %s", got, want)
			}
		})
	}
}

// flatten joins the texts of the nodes that are not without.
func flatten(nodes []node, without diffOp) string {
	var b strings.Builder
	for _, n := range nodes {
		if n.op != without {
			b.WriteString(n.lead + n.text + flatten(n.items, without) + n.tail)
		}
	}
	return b.String()
}
