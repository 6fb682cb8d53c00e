package audit

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	scrub "github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// BenchmarkRecord measures one call that three rules acted on: its notes, its record
// composed, chained and written to a file.
func BenchmarkRecord(b *testing.B) {
	log := chain.New(chain.Options{File: filepath.Join(b.TempDir(), "audit.jsonl")})
	shared := Compile(Options{Log: log, Server: "files"})
	c := shared.Connect(ConnOptions{Scrub: scrub.NewKnownScrubber(scrub.Secrets{}).Line})
	m := wire.NewMessage(wire.Client, []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"size":200}}}`))
	view := &sessionstate.Context{
		Session:   sessionstate.Fact{Value: "s1", Source: sessionstate.Operator, From: "--session"},
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.Operator, From: "--workspace"},
		Principal: &sessionstate.Principal{KeyID: "k1", User: "ada", Tenant: "acme"},
	}
	var call middleware.Call
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := c.begin(&call, m)
		e.note(&call, middleware.Note{Layer: "access", Rule: "access.rules[7]", Act: middleware.Allowed, Why: "it allows the call"})
		for _, rule := range []string{"arguments[0]", "arguments[1]"} {
			e.note(&call, middleware.Note{Layer: "arguments", Rule: rule, Act: middleware.Edited, Path: []string{"params", "arguments", "workspace"}, After: []byte(`"/src/shop"`), Source: "session.workspace.path from --workspace"})
		}
		if e.end(&call, view, outcome{result: resultOK, bytes: 260}) {
			c.record(e)
		}
		if i%1000 == 999 {
			<-log.Commit([]byte(`{"kind":"intent"}`)).Done()
		}
	}
	c.Close()
	if err := shared.Close(time.Minute); err != nil {
		b.Fatal(err)
	}
}
