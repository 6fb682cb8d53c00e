package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// FuzzNames turns bytes into rules that hide and rename the tools a to d, and compares the list
// with what can be called: each listed name calls its own tool and is listed once; no other name
// calls a tool that the server listed; and the list is withheld exactly if two tools would have
// the same name.
func FuzzNames(f *testing.F) {
	f.Add([]byte("ab"), "abcd", false)                           // a becomes b, which exists
	f.Add([]byte("abba"), "abcd", false)                         // a and b swap names
	f.Add([]byte("ab*b"), "abcd", true)                          // b is hidden, so its name is free
	f.Add([]byte("acbc"), "ab", false)                           // both become c
	f.Add([]byte{'a' | conditional, 'c', 'b', 'd'}, "abc", true) // a becomes c under a condition
	f.Add([]byte("ca"), "a", true)                               // c becomes a, but the server has no c
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

// conditional, added to the letter of a rule's tool, gives the rule a condition.
const conditional = 0x80

// rulesOf makes a rule of every two bytes: the tool's letter, and its new one or * to hide it.
// It returns nil for invalid rules.
func rulesOf(t *testing.T, text []byte) *Conn {
	var rules []Rule
	for ; len(text) > 1 && len(rules) < 8; text = text[2:] {
		rule := Rule{Tools: []string{letter(text[0] &^ conditional)}}
		if text[0]&conditional != 0 {
			rule.When = program(t, `session.trust == "sandboxed"`, expression.Bool)
		}
		if text[1] == '*' {
			rule.Hide = true
		} else {
			rule.Rename = letter(text[1])
		}
		rules = append(rules, rule)
	}
	s, err := Compile(Options{Rules: rules})
	if err != nil {
		return nil
	}
	return s.Connect(ConnOptions{})
}

// letter maps a byte to one of the letters a to d, and each of these to itself.
func letter(c byte) string { return string(rune('a' + (c-'a')%4)) }

// someOf returns the tools that the server has: those of a to d that text contains.
func someOf(text string) (tools []string) {
	for _, letter := range "abcd" {
		if strings.ContainsRune(text, letter) {
			tools = append(tools, string(letter))
		}
	}
	return tools
}

// listOnce runs a list through the layer. It returns the names shown and the server's name for
// each; ok is false if the list was withheld.
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

// collides reports whether two of the tools would have one name by the rules: the first rule
// that renames counts, unless a rule hides the tool.
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
