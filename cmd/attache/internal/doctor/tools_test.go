package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/arguments"
)

// What a server names its tools and arguments never means more in a suggestion
// than the name it is.
func TestSuggestedRule(t *testing.T) {
	for _, test := range []struct {
		group argumentGroup
		want  string
	}{
		{argumentGroup{argument: "cwd", tools: []string{"a"}, path: true, words: "working directory"},
			`  - {tools: ["a"], argument: cwd, value: session.workspace.path} # its schema says "working directory"`},
		{argumentGroup{argument: "cwd", tools: []string{"a", "b"}, path: true, words: "x\n- {}"},
			`  - {tools: ["*"], argument: cwd, value: session.workspace.path} # its schema says "x\n- {}"`},
		{argumentGroup{argument: "cwd", tools: []string{"a"}}, ""},
		{argumentGroup{argument: "cwd", tools: []string{"a"}, path: true, rule: "arguments[0]"}, ""},
		{argumentGroup{argument: "cwd", tools: []string{"*"}, path: true}, ""},
		{argumentGroup{argument: "cwd", tools: []string{"a\"], x: [\""}, path: true}, ""},
		{argumentGroup{argument: "a: b.cwd", tools: []string{"a"}, path: true}, ""},
	} {
		if got := suggestedRule(test.group, 2); got != test.want {
			t.Errorf("%v: %s, want %s", test.group, got, test.want)
		}
	}
}

// doctorTools are the tools of the server that asks for arguments of most kinds.
const doctorTools = `[
	{"name":"git_status","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"Path of the workspace"},"repo_path":{"type":"string","description":"Path to the git repository"}},"required":["workspace"]}},
	{"name":"git_init","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Path to the git repository"}}}},
	{"name":"create_issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"workspace":{"type":"string","description":"The GID of the workspace"},"tenantId":{"type":["string","null"]},
		"projectId":{"type":"integer"},"project":{"type":"string"},"title":{"type":"string"},"options":{"type":"object","properties":{"cwd":{"type":"string","description":"Working directory"}}}},"required":["owner"]}}]`

func TestGroupArguments(t *testing.T) {
	groups := groupArguments(toolArguments([]byte(doctorTools)), []arguments.Rule{
		{Name: "arguments[0]", Tools: []string{"git_*"}, Argument: []string{"repo_path"}, Mode: arguments.Pin},
		{Name: "arguments[1]", Tools: []string{"*"}, Argument: []string{"title"}, Mode: arguments.Forbid},
		{Name: "arguments[2]", Tools: []string{"none"}, Argument: []string{"owner"}},
	})
	var got []string
	for _, g := range groups {
		got = append(got, strings.Join([]string{g.argument, g.rule, g.mode, strings.Join(g.tools, "+")}, " "))
	}
	want := []string{
		"options.cwd   create_issue",
		"repo_path arguments[0] pin git_status",
		"title arguments[1] forbid create_issue",
		"workspace   git_status",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
