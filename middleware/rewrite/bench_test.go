package rewrite

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// BenchmarkCall runs calls through rules of each kind: a call that no rule matches, and one of
// a renamed tool with an argument that is set.
func BenchmarkCall(b *testing.B) {
	for name, line := range map[string]string{
		"other":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"q":"x"}}}`,
		"changed": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"q":"x"}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			c := connect(b, []Rule{
				{Tools: []string{"delete_*"}, Hide: true},
				{Tools: []string{"*"}, Hide: true, When: program(b, `session.trust == "sandboxed"`, expression.Bool)},
				{Tools: []string{"search"}, Rename: "find"},
				{Tools: []string{"search"}, Set: []Setting{{Path: []string{"tenant"}, Value: program(b, `principal.tenant`, expression.Any)}}},
			}...)
			handle := c.wrap(func(context.Context, *wire.Message) error { return nil })
			view := &sessionstate.Context{Principal: &sessionstate.Principal{Tenant: "acme"}, Trust: sessionstate.Fact{Value: "direct", Source: sessionstate.Operator}}
			call := &relayed.Call{}
			ctx := &relayed.Context{Context: context.Background(), Call: call}
			var m wire.Message
			var s wire.Scanner
			frame := []byte(line + "\n")
			b.ReportAllocs()
			for b.Loop() {
				m.Reset(wire.Client, frame)
				s.Look(&m)
				call.Reset(nil, true)
				call.SetValue(sessionstate.ContextKey{}, view)
				if err := handle(ctx, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
