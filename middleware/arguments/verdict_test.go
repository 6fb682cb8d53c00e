package arguments

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestJudge compares Judge with testdata/verdicts.txt. A line has "path" or "no", the tool, the
// argument, and the property's schema or only its description.
func TestJudge(t *testing.T) {
	f, err := os.Open("testdata/verdicts.txt")
	check(t, err)
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.SplitN(line, " ", 4)
		property := fields[3]
		if property[0] != '{' {
			property = `{"type":"string","description":"` + property + `"}`
		}
		got := Judge(fields[1], []byte(`{"type":"object","properties":{"`+fields[2]+`":`+property+`}}`), fields[2])
		if got.Path != (fields[0] == "path") {
			t.Errorf("%s\n\tgot %t: %s (%q)", line, got.Path, got.Why, got.Words)
		}
		if got.Why == "" || got.Path && got.Words == "" {
			t.Errorf("%s\n\thas no reason: %+v", line, got)
		}
	}
}

// TestJudgeServers compares Judge with a person's verdicts on the arguments of real servers, in
// testdata/workspace-arguments.txt of the project.
func TestJudgeServers(t *testing.T) {
	data, err := os.ReadFile("../../testdata/workspace-arguments.txt")
	check(t, err)
	section := regexp.MustCompile(`^(\S+) (\d\S*)$`)
	row := regexp.MustCompile(`^  (path|no  ) ([\w.]+)(\*?) (\{.*\}) ([\w -]+)$`)
	server, judged := "", 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if s := section.FindStringSubmatch(line); s != nil {
			server = s[1]
		}
		r := row.FindStringSubmatch(line)
		if r == nil {
			continue
		}
		path := strings.Split(r[2], ".")
		schema := r[4]
		for i := len(path) - 1; i >= 0; i-- {
			schema = `{"type":"object","properties":{"` + path[i] + `":` + schema + `}}`
		}
		for tool := range strings.FieldsSeq(r[5]) {
			judged++
			if got := Judge(tool, []byte(schema), path...); got.Path != (r[1] == "path") {
				t.Errorf("%s %s %s: got %t (%s: %q)", server, tool, r[2]+" "+r[4], got.Path, got.Why, got.Words)
			}
		}
	}
	if judged < 500 {
		t.Errorf("only %d arguments were judged", judged)
	}
}

// The built-in rule does not fill the argument workspace of a server that makes workspaces, because the argument
// may be for one of those. The description is that of a real server, which has a workspace for each flow.
func TestServersOwnWorkspace(t *testing.T) {
	const schema = `{"type":"object","properties":{"workspace":{"type":"string","description":"Workspace directory path"}},"required":["workspace"]}`
	for _, test := range []struct {
		other string
		own   bool
	}{
		{"init_workspace", true},
		{"create_workspace", true},
		{"cmux_new_workspace", true},
		{"attachWorkspace", true},
		{"workspace_add", true},
		{"create_workspaces", true},
		{"workspaces-create", true},
		{"get_workspace", false},
		{"delete_workspace", false},
		{"create_workspace_file", false},
		{"workspace_create_file", false},
		{"create_issue", false},
		{"create", false},
		{"workspace", false},
	} {
		x := newToolTest(t, Default())
		shown := x.listed(`{"name":"t","inputSchema":` + schema + `},{"name":"` + test.other + `","inputSchema":{"type":"object"}}`)
		if got := shown == schema; got != test.own {
			t.Errorf("with %s, the schema is shown as %s", test.other, shown)
		}
		if sent := x.call(`{}`); (sent == `{}`) != test.own {
			t.Errorf("with %s, the server gets %s", test.other, sent)
		}
	}
}

// MakesWorkspaces is called with the name of each tool of the server, for each page of tools/list. There may be
// thousands of tools.
func TestMakesWorkspacesIsCheap(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() { MakesWorkspaces("list_project_items") }); n > 0 {
		t.Errorf("a name without a workspace costs %v allocations, want none", n)
	}
}
