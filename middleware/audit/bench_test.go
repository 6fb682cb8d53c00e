package audit

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	scrub "github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// again is an entry whose record is written again and again.
type again struct {
	entry        *entry
	facts        facts
	rules, edits notes
}

// AppendTo implements chain.Text.
func (t *again) AppendTo(dst []byte) []byte {
	e := t.entry
	e.a.entries.Get() // where the record before put it
	e.facts, e.rules, e.edits = t.facts, append(e.rules, t.rules...), append(e.edits, t.edits...)
	return e.AppendTo(dst)
}

// BenchmarkRecord measures what the log's goroutine does for one call: its record is
// composed, chained and written to a file.
func BenchmarkRecord(b *testing.B) {
	log := chain.New(chain.Options{File: filepath.Join(b.TempDir(), "audit.jsonl")})
	a := New(Options{Log: log, Server: "files", Scrub: scrub.NewToldScrubber(scrub.Secrets{}).Line})
	defer a.Close(time.Minute)
	a.macs.Put(a.macs.Get()) // the key is there
	text := callOfTwentyRules(a)
	size := text.entry.size()
	b.ReportAllocs()
	for waiting := 0; b.Loop(); waiting += size {
		if waiting > 1<<20 {
			waiting = 0
			<-log.Commit([]byte(`{"kind":"intent"}`)).Done()
		}
		log.AppendText(text, size)
	}
}

// callOfTwentyRules is a call that many rules acted on, as it stands when its reply has passed.
func callOfTwentyRules(a *Audit) *again {
	m := wire.NewMessage(wire.Client, []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"size":200}}}`))
	var call middleware.Call
	e := a.begin(&call, m)
	e.trace = middleware.Trace{TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331"}
	e.note(&call, middleware.Note{Layer: "access", Rule: "access.rules[7]", Act: middleware.Allowed, Why: "it allows the call"})
	for _, rule := range []string{"arguments[0]", "arguments[1]"} {
		e.note(&call, middleware.Note{Layer: "arguments", Rule: rule, Act: middleware.Edited, Path: []string{"params", "arguments", "workspace"}, After: []byte(`"/src/shop"`), Source: "session.workspace.path from --workspace"})
	}
	e.finish(&call, &sessionstate.Context{
		Session:   sessionstate.Fact{Value: "s1", Source: sessionstate.Operator, From: "--session"},
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.Operator, From: "--workspace"},
		Principal: &sessionstate.Principal{KeyID: "k1", User: "ada", Tenant: "acme"},
	}, outcome{kind: resultOK, bytes: 260})
	t := &again{e, e.facts, slices.Clone(e.rules), slices.Clone(e.edits)}
	e.free()
	return t
}
