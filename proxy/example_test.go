//go:build unix

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/sessionstate"
)

// script is a server with one tool, whose result is the arguments of the call.
const script = `while read -r line; do
	id=$(printf %s "$line" | sed 's/.*"id":\([^,]*\),.*/\1/')
	case $line in
	*tools/list*) result='{"tools":[{"name":"list_tasks","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"path of the workspace"}},"required":["workspace"]}}]}' ;;
	*) result='{"content":[{"type":"text","text":"'$(printf %s "$line" | sed 's/.*"arguments":{\(.*\)}}}/\1/; s/"//g')'"}]}' ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done`

// policies is a source that returns the same policies for every query.
type policies []policy.Policy

// Effective implements policy.Source.
func (p policies) Effective(context.Context, policy.Query) (policy.Effective, error) {
	return policy.Effective{Policies: p}, nil
}

// A program wraps a server that runs as a child process: it refuses one tool, fills in an
// argument that a call lacks, and puts a policy in front of the first result.
func Example() {
	facts, err := capture.Compile(capture.Options{})
	check(err)
	rules, err := access.Compile(access.Options{Rules: []access.Rule{{Tools: []string{"delete_*"}, Deny: true}}})
	check(err)
	fill, err := arguments.Compile(arguments.Options{Rules: []arguments.Rule{arguments.Default()}})
	check(err)
	brief := briefing.Compile(briefing.Options{Source: policies{{Name: "tests", Text: "All changes need tests."}}, Scope: "acme"})

	// This is one client connection. A program with many clients compiles once, and calls
	// Connect and Run for each of them.
	catalog := new(middleware.Catalog)
	session := facts.Connect(capture.ConnOptions{Base: &sessionstate.Context{
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.Operator, From: "the program"},
	}})
	in, toProxy := io.Pipe()
	fromProxy, out := io.Pipe()
	done := make(chan error)
	go func() {
		done <- proxy.Run(context.Background(), proxy.Options{
			ClientIn: in, ClientOut: out,
			Layers: []middleware.Layer{
				session.Layer(),
				fill.Connect(arguments.ConnOptions{Catalog: catalog, Workspace: session}).Layer(),
				rules.Connect(access.ConnOptions{Catalog: catalog}).Layer(),
				brief.Connect(briefing.ConnOptions{Catalog: catalog}).Layer(),
				catalog.Layer(),
			},
			Start: func(context.Context) (proxy.Upstream, error) {
				p, err := child.Start(context.Background(), child.Options{Argv: []string{"sh", "-c", script}, Env: os.Environ()})
				if err != nil {
					return nil, err
				}
				return p.Upstream(), nil
			},
		})
	}()
	replies := bufio.NewScanner(fromProxy)
	for _, call := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_tasks","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"delete_task","arguments":{}}}`,
	} {
		fmt.Fprintln(toProxy, call)
		replies.Scan()
		fmt.Println(replies.Text())
	}
	toProxy.Close()
	check(<-done)

	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"list_tasks","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"path of the workspace"}}}}]}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"═══ SESSION CONTEXT (auto-injected) ═══\n\nPolicies:\n  - [append] tests: All changes need tests. (local)\n\n═══════════════════════════════════════","annotations":{"audience":["assistant"],"priority":1},"_meta":{"io.github.attache-mcp/briefing":{"digest":"sha256:c468727c734c047193b75fe40d04d27767fb266d72dd108c930a81a6696ff4bc"}}},{"type":"text","text":"workspace:/src/shop"}]}}
	// {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Permission denied: this tool may not be called here"}],"isError":true}}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
