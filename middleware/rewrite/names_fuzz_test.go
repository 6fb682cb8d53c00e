package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// FuzzNames makes rules that hide and rename tools of four letters out of any
// bytes, and holds what is listed against what can be called: each name in the
// list goes to the tool that it stands for, once; no other name goes to a tool the
// server listed; and a list is withheld exactly if two tools would have one name.
func FuzzNames(f *testing.F) {
	f.Add([]byte("ab"), "abcd", false)                         // a is b, and b is there too
	f.Add([]byte("abba"), "abcd", false)                       // they swap
	f.Add([]byte("ab*b"), "abcd", true)                        // b is hidden, so its name is free
	f.Add([]byte("acbc"), "ab", false)                         // both are c
	f.Add([]byte{'a' | sometimes, 'c', 'b', 'd'}, "abc", true) // a is c now and then
	f.Add([]byte("ca"), "a", true)                             // c is a, and the server has no c: a is a
	f.Fuzz(func(t *testing.T, rules []byte, tools string, sandboxed bool) {
		c := rulesOf(t, rules)
		if c == nil {
			t.Skip()
		}
		view := &sessionstate.Context{Trust: sessionstate.Fact{Value: "direct", Source: sessionstate.Operator}}
		if sandboxed {
			view.Trust.Value = "sandboxed"
		}
		listed := someOf(tools)
		shown, names, ok := listOnce(t, c, view, listed)
		for i, name := range shown {
			if got := c.resolve(view, name); ok && (got.why != "" || got.name != names[i]) {
				t.Fatalf("%s is listed as %s, which goes to %q (%s)", names[i], name, got.name, got.why)
			}
		}
		for _, letter := range "abcd" {
			name := string(letter)
			got := c.resolve(view, name)
			there, known := strings.Contains(strings.Join(shown, ""), name), strings.Contains(strings.Join(listed, ""), got.name)
			if ok && got.why == "" && known && !there {
				t.Fatalf("%s is not listed, and goes to %s", name, got.name)
			}
			if ok && strings.Count(strings.Join(shown, ""), name) > 1 {
				t.Fatalf("%s is listed twice: %v", name, shown)
			}
		}
		if twice := collides(c, view, listed); ok == twice {
			t.Fatalf("two tools of one name: %v; the list passed: %v", twice, ok)
		}
	})
}

// sometimes, added to the letter of a rule's tool, gives the rule a condition.
const sometimes = 0x80

// rulesOf makes a rule of each two bytes: the tool's letter, and its new one or *
// for hide. It returns nil for rules that make no sense.
func rulesOf(t *testing.T, text []byte) *Conn {
	var rules []Rule
	for ; len(text) > 1 && len(rules) < 8; text = text[2:] {
		rule := Rule{Tools: []string{letter(text[0] &^ sometimes)}}
		if text[0]&sometimes != 0 {
			rule.When = program(t, `session.trust == "sandboxed"`, expression.Bool)
		}
		if text[1] == '*' {
			rule.Hide = true
		} else {
			rule.Rename = letter(text[1])
		}
		rules = append(rules, rule)
	}
	c, err := connect(rules...)
	if err != nil {
		return nil
	}
	return c
}

// letter returns one of four, itself for each of them.
func letter(c byte) string { return string(rune('a' + (c-'a')%4)) }

// someOf returns which of the four tools the server has.
func someOf(text string) (tools []string) {
	for _, letter := range "abcd" {
		if strings.ContainsRune(text, letter) {
			tools = append(tools, string(letter))
		}
	}
	return tools
}

// listOnce takes a list through the layer. It returns the names shown and the
// server's for each; ok is false if the list was withheld.
func listOnce(t *testing.T, c *Conn, view *sessionstate.Context, tools []string) (shown, names []string, ok bool) {
	var entries []string
	for _, name := range tools {
		entries = append(entries, fmt.Sprintf(`{"name":"%s","title":"%s"}`, name, name))
	}
	reply := page("[" + strings.Join(entries, ",") + "]")
	show(t, c, view, reply)
	for entry := range reply.Get("result", "tools").Elements() {
		shown = append(shown, entry.Get("name").Text())
		names = append(names, entry.Get("title").Text())
	}
	return shown, names, reply.Kind() == wire.Result
}

// collides reports whether two of the tools would have one name, as the rules say
// it: the first that renames counts, and one that hides counts more.
func collides(c *Conn, view *sessionstate.Context, tools []string) bool {
	seen := map[string]bool{}
	for _, tool := range tools {
		name, gone := "", false
		for _, rule := range c.rules {
			if rule.Tools[0] != tool || rule.When != nil && view.Trust.Value != "sandboxed" {
				continue
			}
			gone = gone || rule.Hide
			if name == "" {
				name = rule.Rename
			}
		}
		if name == "" {
			name = tool
		}
		if !gone && seen[name] {
			return true
		}
		seen[name] = seen[name] || !gone
	}
	return false
}
