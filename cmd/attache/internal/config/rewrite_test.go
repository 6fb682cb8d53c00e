package config

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// fullRewrite returns the rules in full.yaml under rewrite.
func fullRewrite() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "rewrite[0]", Tools: []string{"delete_*"}, Hide: true},
		{
			Name: "rewrite[1]", Tools: []string{"search"}, When: program(`session.trust == "sandboxed"`, expression.Bool),
			Rename: "search_code", Describe: "Search the code.",
			Set: []rewrite.Setting{
				{Path: []string{"labels"}, Value: program(`["agent"]`, expression.Any)},
				{Path: []string{"options", "tenant"}, Value: program("principal.tenant", expression.Any)},
			},
		},
	}
}

// Each mistake in a rule is reported at its place in the file.
func TestRewriteProblems(t *testing.T) {
	for name, test := range map[string]struct{ rules, at, want string }{
		"nothing to do":          {`{tools: [a]}`, "2:5", "rewrite[0]: does nothing"},
		"hide: false":            {`{tools: [a], hide: false}`, "2:5", "does nothing"},
		"no tools":               {`{hide: true}`, "2:5", `has no "tools"`},
		"hide and more":          {`{tools: [a], hide: true, describe: x}`, "2:5", "hide leaves nothing"},
		"rename a pattern":       {`{tools: ["a*"], rename: b}`, "2:5", "one tool without * and ?"},
		"rename two":             {`{tools: [a, c], rename: b}`, "2:5", "one tool without * and ?"},
		"rename to itself":       {`{tools: [a], rename: a}`, "2:5", "the name it has"},
		"rename to no name":      {`{tools: [a], rename: "a b"}`, "2:5", `"a b" is not the name of a tool`},
		"empty name":             {`{tools: [a], rename: ""}`, "2:26", "rewrite[0].rename: is empty"},
		"empty description":      {`{tools: [a], describe: ""}`, "2:28", "rewrite[0].describe: is empty: write a text for the model"},
		"caller chooses":         {`{tools: [a], set: {x: principal.tenant}, when: '!has(arguments.x)'}`, "2:5", "the call would say who calls"},
		"hide by arguments":      {`{tools: [a], hide: true, when: has(arguments.x)}`, "2:5", "when reads arguments"},
		"rename by arguments":    {`{tools: [a], rename: b, set: {x: "1"}, when: has(arguments.x)}`, "2:5", "when reads arguments"},
		"describe by arguments":  {`{tools: [a], describe: b, when: size(arguments) == 0}`, "2:5", "when reads arguments"},
		"when is no condition":   {`{tools: [a], hide: true, when: session.id}`, "2:36", "yields a string, not true or false"},
		"set no expression":      {`{tools: [a], set: {x: "["}}`, "2:27", "rewrite[0].set.x"},
		"set an empty name":      {`{tools: [a], set: {x..y: "1"}}`, "2:24", "an empty name in it"},
		"set one in another":     {`{tools: [a], set: {x: "1", x.y: "2"}}`, "2:5", "x and x.y, and one of them contains the other"},
		"two tools of one name":  {"{tools: [a], rename: c}\n  - {tools: [b], rename: c}", "3:5", "b and, by rewrite[0], a would both be shown as c"},
		"two names for one tool": {"{tools: [a], rename: b}\n  - {tools: [a], rename: c, when: session.id == \"x\"}", "3:5", "a is renamed by rewrite[0] already, to b"},
		"one name now and then":  {"{tools: [a], rename: c, when: session.id == \"x\"}\n  - {tools: [b], rename: c}", "3:5", "would both be shown as c"},
		"the same condition":     {"{tools: [a], rename: c, when: session.id == \"x\"}\n  - {tools: [b], rename: c, when: session.id == \"x\"}", "3:5", "would both be shown as c"},
	} {
		_, problems := read("rewrite:\n  - " + test.rules)
		if len(problems) != 1 || !strings.HasSuffix(problems[0].At.String()+":"+strconv.Itoa(problems[0].At.Column), ":"+test.at) || !strings.Contains(problems[0].Text, test.want) {
			t.Errorf("%s: %v; want %q at %s", name, problems, test.want, test.at)
		}
	}
}

func TestRewriteAccepted(t *testing.T) {
	for _, rules := range []string{
		`{tools: [a], rename: b}, {tools: [b], rename: a}`,
		`{tools: [a], rename: c, when: 'session.id == "x"'}, {tools: [b], rename: c, when: 'session.id != "x"'}`,
		`{tools: [a], rename: b, when: 'session.id == "x"'}, {tools: [a], rename: c}`,
		`{tools: [a, b], set: {x.y: '1', x.z: arguments.q}, when: has(arguments.q)}`,
		`{tools: ["file:///secret/*"], hide: true, when: tool.annotations.destructiveHint}`,
	} {
		if _, problems := read("rewrite: [" + rules + "]"); len(problems) > 0 {
			t.Errorf("%s: %v", rules, problems)
		}
	}
}
