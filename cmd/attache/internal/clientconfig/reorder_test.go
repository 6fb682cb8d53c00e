package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// A client may write its file again with the members in another order, or with null for what an entry
// does not have. Unwrap still restores what the entries mean, and a file without comments stays one
// that every client can read.
func TestUnwrapOfReorderedFile(t *testing.T) {
	for file, data := range corpus(t) {
		if filepath.Ext(file.Path) != ".json" || strings.HasSuffix(file.Path, "twins.json") || strings.HasSuffix(file.Path, "claude-code/mcp.json") {
			continue // the others have keys twice, and then the order has a meaning
		}
		launch := Launch{Command: "attache", Flags: []string{"--trust", "direct"}}
		doc := mustRead(t, file, data)
		plan := doc.Wrap(launch, all)
		doc.AddTeams(plan, file, launch)
		random := rand.New(rand.NewPCG(1, 2)) // the same each time
		for range 50 {
			v, err := parseJSON(plan.Content)
			check(t, err)
			v.Standardize()
			reorder(&v, random)
			if v.Minimize(); random.IntN(2) == 0 {
				v.Format()
			}
			again := mustRead(t, file, v.Pack())
			back := again.Unwrap(launch, all)
			again.RemoveTeams(back, file)
			if !json.Valid(back.Content) {
				t.Fatalf("%s: not JSON:\n%s\nwrapped:\n%s", file.Path, back.Content, v)
			}
			if diff := cmp.Diff(meaning(t, data), meaning(t, back.Content)); diff != "" {
				t.Fatalf("%s: %s\nwrapped:\n%s", file.Path, diff, v)
			}
		}
	}
}

// The same for TOML, which Codex and other programs write in other ways.
func TestUnwrapOfReformattedTOML(t *testing.T) {
	for file, data := range corpus(t) {
		if filepath.Ext(file.Path) != ".toml" {
			continue
		}
		launch := Launch{Command: "attache"}
		var content any
		plan := mustRead(t, file, data).Wrap(launch, all)
		check(t, toml.Unmarshal(bytes.TrimPrefix(plan.Content, []byte(mark)), &content))
		for _, multiline := range []bool{false, true} {
			var printed strings.Builder
			check(t, toml.NewEncoder(&printed).SetArraysMultiline(multiline).SetIndentTables(multiline).Encode(content))
			again := mustRead(t, file, []byte(printed.String()))
			back := mustRead(t, file, again.Unwrap(launch, all).Content)
			was, is := map[string]string{}, map[string]string{}
			for _, e := range mustRead(t, file, data).Entries {
				was[e.Name] = fmt.Sprint(e.Command, e.Args, e.remote.address.value.value, e.toml.bearer.value.value)
			}
			for _, e := range back.Entries {
				is[e.Name] = fmt.Sprint(e.Command, e.Args, e.remote.address.value.value, e.toml.bearer.value.value)
			}
			if diff := cmp.Diff(was, is) + cmp.Diff(decode(t, file, data), decode(t, file, back.data)); diff != "" {
				t.Errorf("%s: %s\nwrapped:\n%s", file.Path, diff, printed.String())
			}
		}
	}
}

// A TOML entry with a table for args is not given args a second time.
func TestWrapTOMLWithTableForArgs(t *testing.T) {
	for _, args := range []string{"args = {}", "args.a = 1", "args.a.b = 1", "[mcp_servers.s.args]", "[[mcp_servers.s.args]]"} {
		content := "[mcp_servers.s]\ncommand = \"x\"\n" + args + "\n"
		plan := mustRead(t, mcpclient.File{Path: "x.toml"}, []byte(content)).Wrap(Launch{Command: "attache"}, all)
		if string(plan.Content) != content || plan.Steps[0].Text != "its args are not a list: write one" {
			t.Errorf("%s: %+v\n%s", args, plan.Steps[0], plan.Content)
		}
	}
}

// reorder changes the order of the members in v, and adds null to those of a wrapped server.
func reorder(v *hujson.Value, random *rand.Rand) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return
	}
	for i := range object.Members {
		reorder(&object.Members[i].Value, random)
	}
	if memberNamed(object, "command") != nil && memberNamed(object, "args") != nil {
		for _, name := range []string{"url", "headers", "env"} {
			if memberNamed(object, name) == nil && random.IntN(4) == 0 {
				object.Members = append(object.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{Value: hujson.Literal("null")}})
			}
		}
	}
	random.Shuffle(len(object.Members), func(i, j int) {
		object.Members[i], object.Members[j] = object.Members[j], object.Members[i]
	})
}

// meaning returns data, a JSON file, without members that are null and without empty arguments.
func meaning(t *testing.T, data []byte) any {
	t.Helper()
	v, err := parseJSON(data)
	check(t, err)
	v.Standardize()
	var all any
	check(t, json.Unmarshal(v.Pack(), &all))
	return withoutNothing(all)
}

func withoutNothing(v any) any {
	if object, ok := v.(map[string]any); ok {
		for name, value := range object {
			list, isList := value.([]any)
			if object[name] = withoutNothing(value); value == nil || isList && len(list) == 0 && name == "args" {
				delete(object, name)
			}
		}
	}
	return v
}
