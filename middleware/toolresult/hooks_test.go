package toolresult_test

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A reply may arrive while a handler outside still reads the values of the call, as that of audit does when the
// call has been sent. The race detector finds a hook that changes them.
func TestHooksBesideHandlers(t *testing.T) {
	var k toolresult.Memory
	of := new(relayed.Call)
	of.Reset(nil, true)
	call := (*middleware.Call)(of)
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		call.Value("who")
	}()
	list := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"f","outputSchema":{"type":"object"}}]}}`+"\n"))
	if err := k.Extend(call, list); err != nil {
		t.Error(err)
	}
	<-handled
	handled = make(chan struct{})
	of.Reset(nil, true)
	go func() {
		defer close(handled)
		call.Value("who")
	}()
	reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{}}}`+"\n"))
	r := toolresult.Response{Tool: "f"}
	plan := k.Plan(call, toolresult.Member, new(middleware.Catalog), r, reply)
	if plan.How != toolresult.InMember {
		t.Fatalf("the plan is %+v", plan)
	}
	if err := plan.Put(call, r, reply, toolresult.Text{Text: "text"}, ""); err != nil {
		t.Error(err)
	}
	<-handled
}

// Callers keep the name of a tool until its reply, and a client chooses it.
func TestLongNameIsNotKept(t *testing.T) {
	var k toolresult.Memory
	for name, want := range map[string]string{"f": "f", strings.Repeat("x", 1<<20): ""} {
		m := new(wire.Message)
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`"}}`+"\n"))
		new(wire.Scanner).Look(m)
		if r, ok := k.Expect(m); !ok || r.Tool != want {
			t.Errorf("a name of %d bytes: %d bytes of it are kept (%v)", len(name), len(r.Tool), ok)
		}
	}
}
