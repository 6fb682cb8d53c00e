package toolresult_test

import (
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Two layers, here of briefings and of messages, extend a list once and share the member of a result.
func TestTwoTextsInOneMember(t *testing.T) {
	var k toolresult.Memory
	var catalog middleware.Catalog
	parse := func(line string) *wire.Message { return wire.Parse(wire.Server, []byte(line+"\n")) }
	newCall := func() *middleware.Call {
		c := new(relayed.Call)
		c.Reset(nil, true)
		return (*middleware.Call)(c)
	}
	list, listed := newCall(), parse(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"f","outputSchema":{"type":"object"}}]}}`)
	for range 2 {
		testkit.Check(t, k.Extend(list, listed))
	}
	const schema = `{"type":"object","properties":{"session_context":{"type":"string","description":"Policies and objectives of this session"}}}`
	if got := string(listed.Get("result", "tools").Raw); got != `[{"name":"f","outputSchema":`+schema+`}]` {
		t.Errorf("the list is %s", got)
	}

	call, reply := newCall(), parse(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"a":1}}}`)
	r := toolresult.Response{Tool: "f"}
	for _, text := range []string{"briefing", "messages"} {
		plan := k.Plan(call, toolresult.Member, &catalog, r, reply)
		if plan != (toolresult.Plan{How: toolresult.InMember, Seen: true}) {
			t.Errorf("the plan for %s is %+v", text, plan)
		}
		testkit.Check(t, plan.Put(call, r, reply, toolresult.Text{Text: text}, ""))
	}
	if got := string(reply.Get("result").Raw); got != `{"content":[],"structuredContent":{"session_context":"messages\n\nbriefing","a":1}}` {
		t.Errorf("the result is %s", got)
	}

	// A server's own member of another result is no text of attache.
	reply = parse(`{"jsonrpc":"2.0","id":3,"result":{"content":[],"structuredContent":{"session_context":"mine"}}}`)
	if plan := k.Plan(newCall(), toolresult.Member, &catalog, r, reply); plan.How != toolresult.InBlock {
		t.Errorf("with a member of the server the plan is %+v", plan)
	}
}
