package arguments

import (
	"context"
	"slices"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A bench runs the layer alone, after a tools/list.
type bench struct {
	scanner wire.Scanner
	handler middleware.Handler
	ctx     relayed.Context
	view    *sessionstate.Context
	m       wire.Message

	next     func(*wire.Message)                     // called with each message that passes
	listener func(*middleware.Call, middleware.Note) // called with each note, if not nil
}

// relay does nothing: the layer alone is measured.
type relay struct{ relayed.Relay }

func (relay) Answer(context.Context, *wire.Message) error { return nil }

const benchList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"list_repos","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"Path of the workspace"},"page":{"type":"integer"},"tenant":{"type":"string"},"sort":{},"options":{"type":"object","properties":{"tenant":{"type":"string"}}},"o":{"type":"object","properties":{"a":{},"b":{},"c":{"type":"string"}}}},"required":["workspace"]}}]}}` + "\n"

func newBench(tb testing.TB, rules ...Rule) *bench {
	tb.Helper()
	shared, err := Compile(Options{Rules: rules})
	if err != nil {
		tb.Fatal(err)
	}
	catalog := new(middleware.Catalog)
	layer := shared.Connect(ConnOptions{Catalog: catalog}).Layer()
	b := &bench{view: &sessionstate.Context{
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.Operator, From: "--workspace"},
		Principal: &sessionstate.Principal{KeyID: "k1", Tenant: "acme"},
	}}
	b.scanner.ArgumentNames = layer.ArgumentNames
	b.handler = layer.Wrap(catalog.Layer().Wrap(func(_ context.Context, m *wire.Message) error {
		if b.next != nil {
			b.next(m)
		}
		return nil
	}))
	b.ctx = relayed.Context{Context: tb.Context(), Call: new(relayed.Call)}
	b.handle([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"))
	b.reply(tb, benchList)
	return b
}

// reply runs the reply to the last call through its hooks, and returns the result.
func (b *bench) reply(tb testing.TB, line string) string {
	tb.Helper()
	reply := wire.Parse(wire.Server, []byte(line))
	for _, hook := range slices.Backward(b.ctx.Call.Hooks()) {
		if err := hook(&b.ctx, reply); err != nil {
			tb.Fatal(err)
		}
	}
	return string(reply.Line())
}

func (b *bench) handle(line []byte) {
	b.m.Reset(wire.Client, line)
	b.scanner.Look(&b.m)
	b.run()
}

// run runs the scanned message through the layer.
func (b *bench) run() {
	b.ctx.Call.Reset(relay{}, true)
	b.ctx.Call.SetValue(sessionstate.ContextKey{}, b.view)
	if b.listener != nil {
		b.ctx.Call.Listen(true, b.listener)
	}
	if err := b.handler(&b.ctx, &b.m); err != nil {
		panic(err)
	}
}

var benchCalls = []struct{ name, line string }{
	{"lacks", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"page":1}}}` + "\n"},
	{"has", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_repos","arguments":{"page":1,"workspace":"/src/shop"}}}` + "\n"},
	{"other tool", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"other","arguments":{"page":1}}}` + "\n"},
}

func BenchmarkFill(b *testing.B) { benchmark(b, Default()) }

func BenchmarkPin(b *testing.B) { benchmark(b, pin("workspace", "principal.tenant")) }

// BenchmarkTwenty has twenty rules, of which only the last one applies.
func BenchmarkTwenty(b *testing.B) {
	rules := make([]Rule, 19, 20)
	for i := range rules {
		rules[i] = pin("x", "principal.tenant")
		rules[i].Tools = []string{"write_*", "delete_?_*"}
	}
	benchmark(b, append(rules, pin("workspace", "principal.tenant"))...)
}

func benchmark(b *testing.B, rules ...Rule) {
	for _, c := range benchCalls {
		b.Run(c.name, func(b *testing.B) {
			x := newBench(b, rules...)
			line := []byte(c.line)
			b.ReportAllocs()
			for b.Loop() {
				x.handle(line)
			}
		})
	}
}
