package proxy_test

import (
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Rules that are replaced hold for the frames to come; a call in flight keeps
// the hooks it has.
func TestControlReplace(t *testing.T) {
	var control proxy.Control
	if control.Replace(proxy.Rules{}) {
		t.Error("rules were replaced where no session runs")
	}
	control.Notify(wire.NewNotification(wire.Server, "notifications/x", nil)) // and reaches nobody
	s := proxytest.Setup{Options: proxy.Options{Control: &control}}.Start(t)
	edits := func(arg string) proxy.Rules {
		return proxy.Rules{Layers: []middleware.Layer{editLayer(s, arg)}}
	}
	const ambiguous = `{"jsonrpc":"2.0","method":"x","Method":"y"}`

	s.Client.Send(ambiguous)
	s.Server.Expect(ambiguous)
	control.Replace(edits("one"))
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
	s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"one":true}}}`)

	two := edits("two")
	two.Layers = append(two.Layers, middleware.Layer{
		Name: "needs", Enforces: true, ArgumentNames: [][]string{{"path"}},
	})
	control.Replace(two)
	s.Client.Send(ambiguous)
	s.Client.Expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`)
	s.Client.Send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","arguments":{"path":1,"Path":2}}}`)
	s.Client.Expect(`{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`)
	s.Client.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
	s.Server.Expect(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"two":true}}}`)
	s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	s.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"one":true}}`)
	s.Server.Send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.Client.Expect(`{"jsonrpc":"2.0","id":2,"result":{"two":true}}`)

	control.Replace(proxy.Rules{})
	s.Client.Send(ambiguous)
	s.Server.Expect(ambiguous)
	control.Notify(wire.NewNotification(wire.Server, "notifications/tools/list_changed", nil))
	s.Client.Expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}
