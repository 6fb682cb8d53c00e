package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/wire"
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
	compact, err := oneLine(bytes.TrimPrefix(data, byteOrderMark))
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
func assumedTools(tool string, given wire.Value, rules []arguments.Rule) toolList {
	root := map[string]any{}
	for m := range given.Members() {
		root[m.Key.Text()] = map[string]any{}
	}
	for _, r := range rules {
		at, end := root, len(r.Argument)-1
		for _, name := range r.Argument[:end] {
			at = nested(at, name)
		}
		last := r.Argument[end]
		if at[last] == nil {
			at[last] = map[string]any{}
		}
	}
	list, _ := json.Marshal([]any{map[string]any{ // cannot fail
		"name":        tool,
		"inputSchema": map[string]any{"type": "object", "properties": root},
	}})
	return toolList{list: list, from: "assumed: the tool takes every argument that the call or a rule names, and requires none; " +
		`give the server after "--", --server NAME or --tools FILE to use its own schema`}
}

// nested returns the properties of the object with the given name in properties. It creates the object
// if necessary.
func nested(properties map[string]any, name string) map[string]any {
	if schema, ok := properties[name].(map[string]any); ok {
		if inner, ok := schema["properties"].(map[string]any); ok {
			return inner
		}
	}
	inner := map[string]any{}
	properties[name] = map[string]any{"type": "object", "properties": inner}
	return inner
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
