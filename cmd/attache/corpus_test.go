package main_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/arguments"
)

// A judgedArgument is a person's verdict about a property of some tools of a server, from the words of its
// schema. The verdicts are in testdata/workspace-arguments.txt.
type judgedArgument struct {
	server, version string
	property        string // a dot leads into an object
	required        bool
	verdict         string // path, miss or no: see the file
	schema          string // what decided, as JSON
	tools           []string
}

// judgedArguments reads testdata/workspace-arguments.txt.
func judgedArguments(t *testing.T) []judgedArgument {
	t.Helper()
	data, err := os.ReadFile("../../testdata/workspace-arguments.txt")
	check(t, err)
	section := regexp.MustCompile(`^(\S+) (\d\S*)$`)
	row := regexp.MustCompile(`^  (path|miss|no  ) ([\w.]+)(\*?) (\{.*\}) ([\w -]+)$`)
	var all []judgedArgument
	var server, version string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if s := section.FindStringSubmatch(line); s != nil {
			server, version = s[1], s[2]
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		r := row.FindStringSubmatch(line)
		if r == nil || server == "" || !json.Valid([]byte(r[4])) {
			t.Fatalf("testdata/workspace-arguments.txt: cannot read the line %q", line)
		}
		all = append(all, judgedArgument{
			server: server, version: version, property: r[2], required: r[3] == "*",
			verdict: strings.TrimSpace(r[1]), schema: r[4], tools: strings.Fields(r[5]),
		})
	}
	return all
}

// mayBePlace matches the properties that need a line in testdata/workspace-arguments.txt: those whose name, in
// any spelling, may mean the place to work in.
var mayBePlace = regexp.MustCompile(`(?i)^(` + strings.Join([]string{
	`workspace(_?(ids?|gid|slug|path|root|folder|dir))?`, `paths?`, `local_?path`, `cwd`, `roots?`, `root_?(dir|path)`,
	`directory`, `dir`, `target_?dir`, `work_?(dir|folder)`, `working_?directory`,
	`project(_?(id|gid|key|slug|path|root|dir|name|slug_?or_?id|(id|key)_?or_?(key|id)))?`,
	`repo(sitory)?(_?(id|slug|name|path|url))?`, `organization(_?(id|gid|slug))?`,
}, "|") + `)$`)

// tool returns an input schema with the property.
func (j judgedArgument) tool() []byte {
	schema := j.schema
	for _, name := range slices.Backward(strings.Split(j.property, ".")) {
		schema = `{"type":"object","properties":{"` + name + `":` + schema + `}}`
	}
	return []byte(schema)
}

// Each property is in scope and has one verdict in each tool, and attache reaches the same verdict.
func TestJudgedArguments(t *testing.T) {
	type one struct{ server, tool, property string }
	seen := make(map[one]bool)
	var servers []string
	for _, j := range judgedArguments(t) {
		if j.version != "0" && !slices.Contains(servers, j.server) {
			servers = append(servers, j.server)
		}
		if name := j.property[strings.LastIndexByte(j.property, '.')+1:]; !mayBePlace.MatchString(name) {
			t.Errorf("%s: %s is not a name that the corpus is about", j.server, j.property)
		}
		for _, tool := range j.tools {
			o := one{j.server, tool, j.property}
			if seen[o] {
				t.Errorf("%s %s %s has two lines", o.server, o.tool, o.property)
			}
			seen[o] = true
			if v := arguments.Judge(tool, j.tool(), strings.Split(j.property, ".")...); v.Path != (j.verdict == "path") {
				t.Errorf("%s %s %s takes the workspace's path: %v, and a person says %q: %s (%q)\n\t%s", o.server, o.tool, o.property, v.Path, j.verdict, v.Why, v.Words, j.schema)
			}
		}
	}
	if len(servers) < 25 {
		t.Errorf("the corpus has %d servers, want 25", len(servers))
	}
}

var check = testkit.Check
