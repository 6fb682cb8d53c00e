package rewrite

import (
	"fmt"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// The first call waits for the annotations of its tool: a client that continues a session, as after a
// restart of a front, does not list the tools again. So does the first call after a change of the list.
func TestFirstCallWaitsForAnnotations(t *testing.T) {
	shared, err := Compile(Options{Rules: []Rule{{Tools: []string{"*"}, Hide: true, When: program(t, "tool.annotations.destructiveHint", expression.Bool)}}})
	check(t, err)
	catalog := new(middleware.Catalog)
	s := proxytest.Start(t, shared.Connect(ConnOptions{Catalog: catalog}).Layer(), catalog.Layer())
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	s.Client.Send(initialized)
	s.Server.Expect(initialized)
	for id := range 3 {
		look := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"look"}}`, id)
		s.Client.Send(look)
		asked := wire.Value{Raw: s.Server.Next()}
		if !asked.Get("method").Equals("tools/list") {
			t.Fatalf("the server was not asked for its tools: %s", asked.Raw)
		}
		s.Server.Send(`{"jsonrpc":"2.0","id":` + string(asked.Get("id").Raw) + `,"result":{"tools":[{"name":"look","annotations":{"readOnlyHint":true}}]}}`)
		s.Server.Expect(look)
		s.Server.Send(changed)
		s.Client.Expect(changed)
	}
}

// A notification and a member of a batch cannot wait for the annotations, so they are refused.
func TestNoWaitForAnnotations(t *testing.T) {
	for _, frame := range []string{
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"look"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look"}}]`,
	} {
		shared, err := Compile(Options{Rules: []Rule{{Tools: []string{"*"}, Hide: true, When: program(t, "tool.annotations.destructiveHint", expression.Bool)}}})
		check(t, err)
		catalog := new(middleware.Catalog)
		s := proxytest.Start(t, shared.Connect(ConnOptions{Catalog: catalog}).Layer(), catalog.Layer())
		const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		s.Client.Send(initialized)
		s.Server.Expect(initialized)
		s.Client.Send(frame)
		if asked := (wire.Value{Raw: s.Server.Next()}); !asked.Get("method").Equals("tools/list") {
			t.Fatalf("the server was not asked for its tools: %s", asked.Raw)
		}
		const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
		s.Client.Send(ping)
		s.Server.Expect(ping)
	}
}
