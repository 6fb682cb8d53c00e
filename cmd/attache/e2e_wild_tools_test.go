//go:build e2e

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/arguments"
)

// A wildTool is one entry of tools/list.
type wildTool struct {
	Name        string
	InputSchema *wildSchema
}

// A wildSchema has the keywords of a JSON schema that the tests use.
type wildSchema struct {
	raw        json.RawMessage
	Type       any
	Enum       []json.RawMessage
	Const      json.RawMessage
	Format     string
	Minimum    *float64
	MinItems   int
	Items      *wildSchema
	Properties map[string]*wildSchema
	Required   []string
	AnyOf      []*wildSchema
	OneOf      []*wildSchema
}

func (s *wildSchema) UnmarshalJSON(data []byte) error {
	type plain wildSchema
	s.raw = bytes.Clone(data)
	if data[0] != '{' { // true or false
		return nil
	}
	return json.Unmarshal(data, (*plain)(s))
}

// example returns a small value that matches the schema's simple keywords, with only the required properties.
func (s *wildSchema) example() string {
	if s == nil {
		return `"x"`
	}
	kind := s.Type
	if types, ok := kind.([]any); ok && len(types) > 0 {
		kind = types[0]
	}
	switch {
	case s.Const != nil:
		return string(s.Const)
	case len(s.Enum) > 0:
		return string(s.Enum[0])
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].example()
	case len(s.OneOf) > 0:
		return s.OneOf[0].example()
	case kind == "object" || s.Properties != nil:
		var members []string
		for _, name := range s.Required {
			members = append(members, fmt.Sprintf("%q:%s", name, s.Properties[name].example()))
		}
		return "{" + strings.Join(members, ",") + "}"
	case kind == "array" && s.MinItems > 0:
		return "[" + s.Items.example() + "]"
	case kind == "array":
		return "[]"
	case (kind == "number" || kind == "integer") && s.Minimum != nil:
		return fmt.Sprint(*s.Minimum)
	case kind == "number" || kind == "integer":
		return "1"
	case kind == "boolean":
		return "false"
	case kind == "null":
		return "null"
	case s.Format == "uri" || s.Format == "url":
		return `"http://127.0.0.1:1/"`
	default:
		return `"x"`
	}
}

// listedTools returns all tools in a server's replies to tools/list.
func listedTools(t *testing.T, frames []string) []wildTool {
	t.Helper()
	var all []wildTool
	for _, frame := range frames {
		var reply struct{ Result struct{ Tools []wildTool } }
		if json.Unmarshal([]byte(frame), &reply) == nil {
			all = append(all, reply.Result.Tools...)
		}
	}
	if len(all) == 0 {
		t.Error("the server listed no tools")
	}
	return all
}

// A wildArgument is a property of a tool that may be the directory to work in.
type wildArgument struct {
	tool, property string // a dot separates nested properties
	required       bool
	schema         json.RawMessage
}

// arguments returns the wildArguments of a tool.
func (tool wildTool) arguments() []wildArgument {
	var all []wildArgument
	var walk func(s *wildSchema, path string)
	walk = func(s *wildSchema, path string) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			if mayBePlace.MatchString(name) {
				all = append(all, wildArgument{tool.Name, path + name, slices.Contains(s.Required, name), p.raw})
			}
			if p.Type == "object" {
				walk(p, path+name+".")
			}
		}
	}
	walk(tool.InputSchema, "")
	return all
}

// requireJudged checks that testdata/workspace-arguments.txt has a verdict for each wildArgument of the server,
// and for no other argument, and that the version is the same.
func requireJudged(t *testing.T, server, version string, tools []wildTool, judged []judgedArgument) {
	t.Helper()
	verdicts := make(map[string]judgedArgument)
	for _, j := range judged {
		if j.server != server {
			continue
		}
		if j.version != version {
			t.Errorf("testdata/workspace-arguments.txt has %s %s; %s is installed", server, j.version, version)
			return
		}
		for _, tool := range j.tools {
			verdicts[tool+" "+j.property] = j
		}
	}
	for _, tool := range tools {
		for _, a := range tool.arguments() {
			j, ok := verdicts[a.tool+" "+a.property]
			delete(verdicts, a.tool+" "+a.property)
			if !ok || j.required != a.required {
				t.Errorf("testdata/workspace-arguments.txt has no verdict on %s %s, required %v: %s", a.tool, a.property, a.required, a.schema)
			}
			if v := arguments.Judge(a.tool, tool.InputSchema.raw, strings.Split(a.property, ".")...); v.Path != (j.verdict == "path") {
				t.Errorf("%s %s is the workspace's path: %v, but the verdict of a person is %q: %s (%q)\n\t%s", a.tool, a.property, v.Path, j.verdict, v.Why, v.Words, a.schema)
			}
		}
	}
	for name := range verdicts {
		t.Errorf("testdata/workspace-arguments.txt judges %q, which the server does not list", name)
	}
}

// requireListed checks that the file of testdata/recipes for this server, if there is one, lists its tools and
// their arguments.
func requireListed(t *testing.T, server, version string, tools []wildTool) {
	t.Helper()
	files, err := filepath.Glob("testdata/recipes/*.txt")
	check(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		check(t, err)
		head, rest, _ := strings.Cut(string(data), "\n")
		if !strings.HasPrefix(head, "# "+server+" "+version+":") {
			continue
		}
		rest, _, _ = strings.Cut(rest, "\n#") // the rest is for another version
		var want, got []string
		for _, tool := range tools {
			want = append(want, strings.Join(append([]string{tool.Name}, slices.Sorted(maps.Keys(tool.InputSchema.Properties))...), " "))
		}
		for line := range strings.Lines(rest) {
			if words := strings.Fields(line); len(words) > 0 {
				slices.Sort(words[1:])
				got = append(got, strings.Join(words, " "))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s differs from the server's list:\n%s", file, strings.Join(want, "\n"))
		}
	}
}

// fills lists what attache may fill in for a server: the required properties that are the workspace's path.
type fills struct {
	allowed map[string][]string // by tool
	dir     string
	seen    map[string]int // the number of tools that were changed in lists, by property
}

func newFills(server, dir string, judged []judgedArgument) *fills {
	f := &fills{allowed: make(map[string][]string), dir: dir, seen: make(map[string]int)}
	for _, j := range judged {
		if j.server == server && j.verdict == "path" && j.required {
			for _, tool := range j.tools {
				f.allowed[tool] = append(f.allowed[tool], j.property)
			}
		}
	}
	return f
}

// words describes the changes.
func (f *fills) words() (all []string) {
	for _, property := range slices.Sorted(maps.Keys(f.seen)) {
		all = append(all, fmt.Sprintf("fills `%s` of %d tools", property, f.seen[property]))
	}
	return all
}

// reply reports whether two tools/list replies differ only in properties that are no longer
// required because they may be filled.
func (f *fills) reply(sent, arrived string) bool {
	var want, got struct {
		Result map[string]any
	}
	if json.Unmarshal([]byte(sent), &want) != nil || json.Unmarshal([]byte(arrived), &got) != nil {
		return false
	}
	tools, _ := want.Result["tools"].([]any)
	shown, _ := got.Result["tools"].([]any)
	if len(tools) != len(shown) {
		return false
	}
	for i := range tools {
		f.relax(tools[i], shown[i])
	}
	return reflect.DeepEqual(want, got)
}

// relax removes the required properties of a tool that may be filled and that the shown tool does not require.
func (f *fills) relax(tool, shown any) {
	entry, _ := tool.(map[string]any)
	schema, _ := entry["inputSchema"].(map[string]any)
	required, _ := schema["required"].([]any)
	other, _ := shown.(map[string]any)
	shownSchema, _ := other["inputSchema"].(map[string]any)
	left, _ := shownSchema["required"].([]any)
	name, _ := entry["name"].(string)
	for _, property := range f.allowed[name] {
		if slices.Contains(required, any(property)) && !slices.Contains(left, any(property)) {
			required = slices.DeleteFunc(required, func(v any) bool { return v == property })
			f.seen[property]++
		}
	}
	if schema == nil {
		return
	}
	if schema["required"] = required; len(required) == 0 && shownSchema["required"] == nil {
		delete(schema, "required")
	}
}

// call reports whether two calls differ only in allowed arguments, filled with the workspace.
func (f *fills) call(sent, arrived string) bool {
	type call struct {
		Params struct {
			Name      string
			Arguments map[string]any
		}
	}
	var want, got call
	if json.Unmarshal([]byte(sent), &want) != nil || json.Unmarshal([]byte(arrived), &got) != nil {
		return false
	}
	for _, property := range f.allowed[want.Params.Name] {
		if _, given := want.Params.Arguments[property]; !given && got.Params.Arguments[property] == f.dir {
			delete(got.Params.Arguments, property)
		}
	}
	return reflect.DeepEqual(want, got)
}
