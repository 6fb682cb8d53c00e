package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/arguments"
)

func TestLooksLike(t *testing.T) {
	for name, want := range map[string]string{
		"workspace": "workspace", "workspacePath": "workspace", "workspace_id": "workspace", "repo_path": "workspace",
		"cwd": "workspace", "working-directory": "workspace", "projectPath": "workspace",
		"project": "project", "project_id": "project", "projectKey": "project",
		"org": "organisation", "organizationSlug": "organisation", "owner": "organisation",
		"repo": "repository", "repositoryName": "repository",
		"tenant": "tenant", "tenant_id": "tenant",
		"path": "", "id": "", "query": "", "projection": "", "orgs": "", "": "",
	} {
		if like, _ := looksLike(name, "The path to use."); like.kind != want {
			t.Errorf("%q looks like %q, want %q", name, like.kind, want)
		}
	}
	for description, want := range map[string]string{
		"Path to the Git repository. Defaults to session working directory.": "workspace",
		"Root of the project": "workspace",
		"Destination path where the repository should be cloned.": "", // @cyanheads/git-mcp-server
		"Path to a file of the repository":                        "",
	} {
		if like, _ := looksLike("path", description); like.kind != want {
			t.Errorf("%q looks like %q, want %q", description, like.kind, want)
		}
	}
}

// What a server names its tools and arguments never means more in a suggestion
// than the name it is.
func TestSuggestedRule(t *testing.T) {
	for _, test := range []struct {
		group argumentGroup
		want  string
	}{
		{argumentGroup{Argument: "cwd", Tools: []string{"a"}}, `  - {tools: ["a"], argument: cwd, value: session.workspace.path}`},
		{argumentGroup{Argument: "cwd", Tools: []string{"a", "b"}}, `  - {tools: ["*"], argument: cwd, value: session.workspace.path}`},
		{argumentGroup{Argument: "o.workspaceId", Tools: []string{"a"}}, `  - {tools: ["a"], argument: o.workspaceId, value: session.workspace.id}`},
		{argumentGroup{Argument: "tenant", Tools: []string{"a"}}, `  - {tools: ["a"], argument: tenant, value: principal.tenant, mode: pin} # refuses the calls of those without one`},
		{argumentGroup{Argument: "repo", Tools: []string{"a"}}, `  - {tools: ["a"], argument: repo, value: '"YOUR-REPOSITORY"'} # write your own`},
		{argumentGroup{Argument: "repo", Tools: []string{"a"}, Optional: true}, ""},
		{argumentGroup{Argument: "cwd", Tools: []string{"a"}, Optional: true}, `  - {tools: ["a"], argument: cwd, value: session.workspace.path}`},
		{argumentGroup{Argument: "cwd", Tools: []string{"a"}, Rule: "arguments[0]"}, ""},
		{argumentGroup{Argument: "cwd", Tools: []string{"*"}}, ""},
		{argumentGroup{Argument: "cwd", Tools: []string{"a\"], x: [\""}}, ""},
		{argumentGroup{Argument: "a: b.cwd", Tools: []string{"a"}}, ""},
	} {
		name := test.group.Argument[strings.LastIndexByte(test.group.Argument, '.')+1:]
		test.group.suggest, _ = looksLike(name, "")
		if got := suggestedRule(test.group, 2); got != test.want {
			t.Errorf("%v: %s, want %s", test.group, got, test.want)
		}
	}
}

// An argument that wants an id is not given a path without a warning: Asana's
// workspace is one.
func TestWantsID(t *testing.T) {
	for description, want := range map[string]bool{
		"The workspace GID to create the project in": true,
		"ID of the workspace":                        true,
		"The workspace to search in":                 false,
		"Path or id of the workspace":                false,
		"An idea of a workspace":                     false,
		"":                                           false,
	} {
		if got := (toolArgument{description: description}).wantsID(); got != want {
			t.Errorf("%q: %v, want %v", description, got, want)
		}
	}
}

// doctorTools are the tools of the server that asks for arguments of most kinds.
const doctorTools = `[
	{"name":"git_status","inputSchema":{"type":"object","properties":{"workspace":{"type":"string"},"repo_path":{"type":"string"}}}},
	{"name":"create_issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"workspace":{"type":"string","description":"The GID of the workspace"},"tenantId":{"type":["string","null"]},
		"projectId":{"type":"integer"},"project":{"type":"string"},"title":{"type":"string"},"options":{"type":"object","properties":{"cwd":{"type":"string"}}}},"required":["owner"]}}]`

func TestGroupArguments(t *testing.T) {
	groups := groupArguments(toolArguments([]byte(doctorTools)), []arguments.Rule{
		{Name: "arguments[0]", Tools: []string{"git_*"}, Argument: []string{"repo_path"}, Mode: arguments.Pin},
		{Name: "arguments[1]", Tools: []string{"*"}, Argument: []string{"title"}, Mode: arguments.Forbid},
		{Name: "arguments[2]", Tools: []string{"none"}, Argument: []string{"owner"}},
	})
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
		"workspace workspace   git_status+create_issue",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
