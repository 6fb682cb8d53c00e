package teams_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// BenchmarkWithoutMail measures a call without waiting messages.
func BenchmarkWithoutMail(b *testing.B) {
	db := openStore(b)
	shared := teams.Compile(teams.Options{
		Open:          func() (*store.Store, error) { return db, nil },
		Workspace:     func(*sessionstate.Context) string { return "w" },
		ClientProcess: func() string { return "" },
	})
	defer shared.Close()
	view := &sessionstate.Context{Session: sessionstate.Fact{Value: "me", Source: sessionstate.Operator}}
	results := new(toolresult.Memory)
	m := wire.Parse(wire.Client, []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"bench"}}}`+"\n"))
	results.LearnClient(m)
	handler := shared.Connect(teams.ConnOptions{Results: results}).Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
	frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"size":200}}}` + "\n")
	var call relayed.Call
	var scanner wire.Scanner
	m.Reset(wire.Client, frame)
	scanner.Look(m)
	ctx := &relayed.Context{Context: b.Context(), Call: &call}
	b.ReportAllocs()
	for b.Loop() {
		call.Reset(nil, true)
		call.SetValue(sessionstate.ContextKey{}, view)
		if err := handler(ctx, m); err != nil {
			b.Fatal(err)
		}
		if len(call.Hooks()) > 0 {
			b.Fatal("the reply is read")
		}
	}
}
