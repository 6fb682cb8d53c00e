package arguments_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A bench is the layer alone, with a schema learnt and one call to handle.
type bench struct {
	scanner wire.Scanner
	handler middleware.Handler
	ctx     middleware.Context
	view    *sessionstate.Context
	m       wire.Message
}

// relay does nothing: the layer alone is measured.
type relay struct{ middleware.Relay }

func (relay) Answer(context.Context, *wire.Message) error { return nil }

const benchList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"list_repos","inputSchema":{"type":"object","properties":{"workspace":{"type":"string"},"page":{"type":"integer"}},"required":["workspace"]}}]}}` + "\n"

func newBench(tb testing.TB, rules ...arguments.Rule) *bench {
	tb.Helper()
	a := arguments.New(arguments.Options{Rules: rules})
	b := &bench{view: &sessionstate.Context{
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.Operator, From: "--workspace"},
		Principal: &sessionstate.Principal{KeyID: "k1", Tenant: "acme"},
	}}
	b.scanner.ArgumentNames = a.Names()
	b.handler = a.Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
	b.ctx = middleware.Context{Context: tb.Context(), Call: new(middleware.Call)}
	b.handle([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"))
	var reply wire.Message
	reply.Reset(wire.Server, []byte(benchList))
	reply.LookEnvelope()
	for _, hook := range b.ctx.Call.Hooks() {
		if err := hook(&b.ctx, &reply); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

func (b *bench) handle(line []byte) {
	b.ctx.Call.Reset(relay{}, true)
	b.ctx.Call.SetValue(sessionstate.ContextKey{}, b.view)
	b.m.Reset(wire.Client, line)
	b.scanner.Look(&b.m)
	if err := b.handler(&b.ctx, &b.m); err != nil {
		panic(err)
	}
}

var benchCalls = []struct{ name, line string }{
	{"lacks", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"page":1}}}` + "\n"},
	{"has", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"page":1,"workspace":"/src/shop"}}}` + "\n"},
	{"other tool", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"other","arguments":{"page":1}}}` + "\n"},
}

func BenchmarkFill(b *testing.B) {
	for _, c := range benchCalls {
		b.Run(c.name, func(b *testing.B) {
			x := newBench(b, arguments.Default())
			line := []byte(c.line)
			b.ReportAllocs()
			for b.Loop() {
				x.handle(line)
			}
		})
	}
}
