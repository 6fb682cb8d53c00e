package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A toolList holds the server's tools, and their source.
type toolList struct {
	list  []byte // a JSON array
	from  string // the source, for people
	known bool   // not assumed
}

// toolsFromFile reads a saved result of tools/list: the reply, its result, or the array of tools.
func toolsFromFile(path string) (toolList, error) {
	data, err := cli.ReadAtMost(path, maxFile)
	if err != nil {
		return toolList{}, cli.Usagef("--tools: %s: %v", path, cli.Unreadable(err))
	}
	compact, err := oneLine(textfile.TrimMark(data))
	if err != nil {
		return toolList{}, cli.Usagef("--tools: %s:%v", path, err)
	}
	v := wire.Value{Raw: compact}
	for _, at := range [][]string{{}, {"tools"}, {"result", "tools"}} {
		if list := v.Get(at...); list.IsArray() {
			return toolList{list.Raw, "from " + path, true}, nil
		}
	}
	return toolList{}, cli.Usagef("--tools: %s has no list of tools: save the answer to tools/list, {\"tools\":[...]}", path)
}

// assumedTools returns a list with the called tool. Its schema has the arguments of the call and those
// that rules name.
func assumedTools(tool string, call wire.Value, rules []arguments.Rule) toolList {
	root := map[string]any{}
	for m := range call.Members() {
		root[m.Key.Text()] = map[string]any{}
	}
	for _, r := range rules {
		addArgument(root, r.Argument)
	}
	list, _ := json.Marshal([]any{map[string]any{ // cannot fail
		"name":        tool,
		"inputSchema": map[string]any{"type": "object", "properties": root},
	}})
	return toolList{list: list, from: "assumed: the tool takes every argument that the call or a rule names, and requires none; " +
		`give the server after "--", --server NAME or --tools FILE to use its own schema`}
}

// addArgument adds the argument at path, which goes through objects, to the properties of a schema.
func addArgument(properties map[string]any, path []string) {
	schema, known := properties[path[0]].(map[string]any)
	inner, ok := schema["properties"].(map[string]any)
	switch {
	case len(path) == 1 && known:
		return
	case len(path) == 1:
		properties[path[0]] = map[string]any{}
		return
	case !ok:
		inner = map[string]any{}
		properties[path[0]] = map[string]any{"type": "object", "properties": inner}
	}
	addArgument(inner, path[1:])
}

// toolsOfServer starts a server, lists its tools and stops it. It calls no tool. It shows the server's
// stderr only if that fails, because many servers write long texts at each start.
func toolsOfServer(ctx context.Context, server inspect.Target) (toolList, error) {
	var list []byte
	seen, err := server.Ask(ctx, inspect.Timeout, func(l *inspect.Client) (err error) {
		list, err = l.List()
		return err
	})
	var started *child.StartError
	switch {
	case errors.As(err, &started):
		return toolList{}, err
	case err != nil:
		return toolList{}, fmt.Errorf("the server's tools could not be listed: %w: try it alone, or save its tools and give --tools FILE%s", err, child.LastWords(seen.Tail))
	}
	return toolList{list, "of the server, asked for just now", true}, nil
}
