package assembly

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/sessionstate"
)

// A connection whose instructions had the briefing keeps its turn until it ends, also if it ends after a
// reload that removed the policies.
func TestCloseWithoutPolicies(t *testing.T) {
	p := attachetest.WriteConfig(t, "{}")
	shared, err := Compile(Options{Process: p, Log: slog.New(slog.DiscardHandler)}, attachetest.Load(t, p))
	check(t, err)
	defer shared.Close()
	synctest.Test(t, func(t *testing.T) {
		conn := shared.Connect(ConnOptions{}) // its layers are those after the reload
		var asked atomic.Int64
		turns := sessionstate.NewMemoryTurns(nil)
		before := briefing.Compile(briefing.Options{Source: objective{}, Anonymous: true, TTL: time.Hour,
			UserTurns: func(string) (sessionstate.Turns, error) { asked.Add(1); return turns, nil }})
		o := conn.Relay()
		o.Layers = append(o.Layers, before.Connect(briefing.ConnOptions{
			Memory: &conn.briefed, Catalog: &conn.catalog, Server: "s", ClientProcess: func() string { return "1" },
		}).Layer())
		s := proxytest.Setup{Options: o}.Start(t)
		s.Client.Send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"gemini-cli-mcp-client","version":"1"}}}`)
		s.Server.Next()
		s.Server.Send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		s.Client.Next()
		kept := asked.Load()
		if time.Sleep(time.Hour); asked.Load() == kept {
			t.Error("the turn was not kept")
		}
		s.Client.Close()
		_ = s.Wait()
		conn.Close()
		kept = asked.Load()
		if time.Sleep(time.Hour); asked.Load() != kept {
			t.Error("the turn is kept after the end of the connection")
		}
	})
}

type objective struct{}

func (objective) Effective(context.Context, policy.Query) (policy.Effective, error) {
	return policy.Effective{Objectives: []string{"one"}}, nil
}
