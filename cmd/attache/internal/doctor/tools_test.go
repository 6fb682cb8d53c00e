package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

func TestLooksLike(t *testing.T) {
	for name, want := range map[string]string{
		"workspace": "", "workspace_id": "workspace id", "workspacePath": "", "cwd": "",
		"project": "project", "project_id": "project", "projectKey": "project",
		"org": "organisation", "organizationSlug": "organisation", "owner": "organisation",
		"repo": "repository", "repositoryName": "repository",
		"tenant": "tenant", "tenant_id": "tenant",
		"path": "", "id": "", "query": "", "projection": "", "orgs": "", "": "",
	} {
		if like, _ := classOf(name, arguments.Verdict{}); like.kind != want {
			t.Errorf("%q looks like %q, want %q", name, like.kind, want)
		}
		if like, _ := classOf(name, arguments.Verdict{Path: true}); like.kind != "workspace" {
			t.Errorf("%q looks like %q by its schema, want workspace", name, like.kind)
		}
	}
}

// The names of a server's tools and arguments have no special meaning in a suggestion.
func TestSuggestedRule(t *testing.T) {
	for _, test := range []struct {
		group argumentGroup
		want  string
	}{
		{argumentGroup{Argument: "cwd", Tools: []string{"a"}, Path: true, Words: "working directory"},
			`  - {tools: ["a"], argument: cwd, value: session.workspace.path} # its schema says "working directory"`},
		{argumentGroup{Argument: "cwd", Tools: []string{"a", "b"}, Path: true, Words: "x\n- {}", Optional: true},
			`  - {tools: ["*"], argument: cwd, value: session.workspace.path} # its schema says "x\n- {}"`},
		{argumentGroup{Argument: "cwd", Tools: []string{"a"}}, ""},
		{argumentGroup{Argument: "o.workspaceId", Tools: []string{"a"}}, `  - {tools: ["a"], argument: o.workspaceId, value: session.workspace.id} # by its name`},
		{argumentGroup{Argument: "tenant", Tools: []string{"a"}}, `  - {tools: ["a"], argument: tenant, value: principal.tenant, mode: pin} # by its name; refuses the calls of those without one`},
		{argumentGroup{Argument: "repo", Tools: []string{"a"}}, `  - {tools: ["a"], argument: repo, value: '"YOUR-REPOSITORY"'} # by its name; write your own`},
		{argumentGroup{Argument: "repo", Tools: []string{"a"}, Optional: true}, ""},
		{argumentGroup{Argument: "cwd", Tools: []string{"a"}, Path: true, Rule: "arguments[0]"}, ""},
		{argumentGroup{Argument: "cwd", Tools: []string{"*"}, Path: true}, ""},
		{argumentGroup{Argument: "cwd", Tools: []string{"a\"], x: [\""}, Path: true}, ""},
		{argumentGroup{Argument: "a: b.cwd", Tools: []string{"a"}, Path: true}, ""},
	} {
		name := test.group.Argument[strings.LastIndexByte(test.group.Argument, '.')+1:]
		test.group.suggest, _ = classOf(name, arguments.Verdict{Path: test.group.Path})
		if got := suggestedRule(test.group, 2); got != test.want {
			t.Errorf("%v: %s, want %s", test.group, got, test.want)
		}
	}
}

// doctorTools are tools of a server with arguments of most kinds.
const doctorTools = `[
	{"name":"git_status","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"Path of the workspace"},"repo_path":{"type":"string","description":"Path to the git repository"}},"required":["workspace"]}},
	{"name":"git_init","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Path to the git repository"}}}},
	{"name":"create_issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"workspace":{"type":"string","description":"The GID of the workspace"},"tenantId":{"type":["string","null"]},
		"projectId":{"type":"integer"},"project":{"type":"string"},"title":{"type":"string"},"options":{"type":"object","properties":{"cwd":{"type":"string","description":"Working directory"}}}},"required":["owner"]}}]`

func TestGroupArguments(t *testing.T) {
	all := toolArguments([]byte(doctorTools))
	rules := []arguments.Rule{
		{Name: "arguments[0]", Tools: []string{"git_*"}, Argument: []string{"repo_path"}, Mode: arguments.Pin},
		{Name: "arguments[1]", Tools: []string{"*"}, Argument: []string{"title"}, Mode: arguments.Forbid},
		{Name: "arguments[2]", Tools: []string{"none"}, Argument: []string{"owner"}},
	}
	for i := range all {
		all[i].rule = actingRule(rulesFor(&all[i], rules), &expression.Inputs{})
	}
	groups := groupArguments(all)
	var got []string
	for _, g := range groups {
		got = append(got, strings.Join([]string{g.Argument, g.Kind, g.Rule, g.Mode, strings.Join(g.Tools, "+")}, " "))
	}
	want := []string{
		"options.cwd workspace   create_issue",
		"owner organisation   create_issue",
		"project project   create_issue",
		"repo_path workspace arguments[0] pin git_status",
		"tenantId tenant   create_issue",
		"title  arguments[1] forbid create_issue",
		"workspace workspace   git_status",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A workspace of a server that makes workspaces is not that of the session; its project is.
func TestArgumentsOfServerWithOwnWorkspaces(t *testing.T) {
	all := toolArguments([]byte(`[{"name":"init_workspace","inputSchema":{"type":"object"}},
		{"name":"record","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"Workspace path"},
			"project_dir":{"type":"string","description":"Project root directory path"}}}}]`))
	for _, a := range all {
		if want := a.path[0] == "project_dir"; a.verdict.Path != want {
			t.Errorf("%s takes the path of the session's workspace: %v, want %v", a.path[0], a.verdict.Path, want)
		}
	}
	if len(all) != 2 {
		t.Errorf("got %d arguments, want 2", len(all))
	}
}

// An argument with a further word is another one: a rule for workspace_id must not become one for workspace.
func TestMeantArgument(t *testing.T) {
	for _, test := range []struct{ rule, argument, want string }{
		{"projectID", "projectId", `: did you mean "projectId"?`},
		{"workspce", "workspace", `: did you mean "workspace"?`},
		{"projects", "project", `: did you mean "project"?`},
		{"workspace_id", "workspace", ""},
		{"projectId", "project", ""},
	} {
		all := []toolArgument{{tool: "t", path: []string{test.argument}}}
		if got := meantArgument(&arguments.Rule{Tools: []string{"*"}, Argument: []string{test.rule}}, all); got != test.want {
			t.Errorf("for %s: %q, want %q", test.rule, got, test.want)
		}
	}
}
