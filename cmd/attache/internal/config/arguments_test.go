package config

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// program compiles a valid expression.
func program(src string, want expression.Type) *expression.Program {
	p, err := expression.Compile(src, want)
	if err != nil {
		panic(err)
	}
	return p
}

// fullArguments returns the rules in full.yaml under arguments.
func fullArguments() []arguments.Rule {
	yes := true
	return []arguments.Rule{
		{Name: "arguments[0]", Tools: []string{"git_*"}, Argument: []string{"path"}, Value: program("session.workspace.path", expression.Any), Mode: "fill", Schema: "hide", Required: &yes},
		{
			Name: "arguments[1]", Tools: []string{"search", "list_?"}, Argument: []string{"options", "tenant"}, Mode: "pin",
			Value: program("principal.tenant", expression.Any),
			When:  program(`session.trust == "sandboxed"`, expression.Bool),
		},
		{Name: "arguments[2]", Tools: []string{"git_push"}, Argument: []string{"force"}, Mode: "forbid"},
	}
}

// Each mistake in a rule is reported at its place in the file.
func TestArgumentProblems(t *testing.T) {
	for name, test := range map[string]struct{ rules, at, want string }{
		"unknown mode":               {`{tools: [a], argument: x, value: session.id, mode: pinn}`, "2:56", `unknown word "pinn": did you mean "pin"?`},
		"fill without a value":       {`{tools: [a], argument: x}`, "2:5", `has no "value"`},
		"pin without a value":        {`{tools: [a], argument: x, mode: pin}`, "2:5", `has no "value"`},
		"forbid with a value":        {`{tools: [a], argument: x, value: session.id, mode: forbid}`, "2:5", "mode forbid takes no value"},
		"caller chooses":             {`{tools: [a], argument: x.y, value: principal.tenant, mode: pin, when: '!has(arguments.x.y)'}`, "2:5", "the call would say who calls"},
		"required beside pin":        {`{tools: [a], argument: x, value: session.id, mode: pin, required: false}`, "2:5", "required is for mode fill"},
		"fill from the principal":    {`{tools: [a], argument: x, value: principal.tenant}`, "2:5", "would let the call say who calls"},
		"fill from a mixture":        {`{tools: [a], argument: x, value: '"t-" + principal.user'}`, "2:5", "write mode: pin"},
		"fill from trust":            {`{tools: [a], argument: x, value: session.trust}`, "2:5", "write mode: pin"},
		"pin from arguments":         {`{tools: [a], argument: x, value: arguments.y, mode: pin}`, "2:5", "must not depend on arguments"},
		"pin from arguments, hidden": {`{tools: [a], argument: x, value: 'has(arguments.y) ? "a" : "b"', mode: pin}`, "2:5", "must not depend on arguments"},
		"half a path":                {`{tools: [a], argument: x, value: session.workspace}`, "2:38", `did you mean "session.workspace.path"?`},
		"misspelt path":              {`{tools: [a], argument: x, value: principal.tennant, mode: pin}`, "2:38", `did you mean "principal.tenant"?`},
		"path to nowhere":            {`{tools: [a], argument: x, value: nothing.like.it}`, "2:38", "write one of session.id"},
		"an object":                  {`{tools: [a], argument: x, value: session}`, "2:38", `did you mean "session.id"?`},
		"bad expression":             {`{tools: [a], argument: x, value: 'session.id +'}`, "2:38", "write CEL"},
		"condition that is a text":   {`{tools: [a], argument: x, value: session.id, when: session.id}`, "2:56", "true or false"},
		"same as before":             {"{tools: [a, b], argument: x, value: session.id}\n  - {tools: [b], argument: x, value: session.workspace.path}", "3:5", "never applies: arguments[0] is about the same argument of the same tools"},
		"some tools before":          {"{tools: [c, 'git_*'], argument: x, value: session.id, mode: pin}\n  - {tools: [git_status], argument: x, mode: forbid}", "3:5", "put the rule for fewer tools first"},
		"all tools before":           {"{tools: ['*'], argument: x, value: session.id}\n  - {tools: [b], argument: x, value: session.workspace.path}", "3:5", "never applies: arguments[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := read("arguments:\n  - " + test.rules)
			if len(problems) != 1 {
				t.Fatalf("%d problems, want one: %v", len(problems), problems)
			}
			got := problems[0].String()
			if !strings.HasPrefix(got, "/conf/config.yaml:"+test.at+": ") || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s: ...%s...", got, test.at, test.want)
			}
		})
	}
}

func TestArgumentRulesAccepted(t *testing.T) {
	for _, rules := range []string{
		`{tools: [a], argument: x, value: 'true', mode: pin}`,
		`{tools: [a], argument: x, value: '["agent"]'}`,
		`{tools: [a], argument: x, value: principal.roles, mode: pin}`,
		`{tools: [a], argument: x, value: arguments.y}`,
		`{tools: [a], argument: x, value: '"literal"', mode: pin, schema: keep}`,
		"{tools: [a], argument: x, value: session.id, when: 'tool.annotations.readOnlyHint'}\n  - {tools: [a], argument: x, mode: forbid}",
		"{tools: [a], argument: x, value: session.id}\n  - {tools: ['*'], argument: x, mode: forbid}",
	} {
		if s, problems := read("arguments:\n  - " + rules); len(problems) > 0 || len(s.Arguments) == 0 {
			t.Errorf("%s: %v", rules, problems)
		}
	}
}
