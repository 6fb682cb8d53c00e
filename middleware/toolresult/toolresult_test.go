package toolresult_test

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
)

// The result of a task belongs to the tool that began it, in both eras. A task with a long id is not remembered: the
// server chooses the ids.
func TestTasksAreRemembered(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct{ result, id, tool string }{
		{`{"task":{"taskId":"1"}}`, "1", "f"},
		{`{"resultType":"task","taskId":"1"}`, "1", "f"},
		{`{"task":{"taskId":"` + long + `"}}`, long, "f"},
		{`{"task":{"taskId":"` + long + `x"}}`, long + "x", ""},
		{`{"taskId":"1"}`, "", ""}, // no handle
		{`{"content":[],"task":{"taskId":"1"}}`, "", ""},
	} {
		var k toolresult.Memory
		reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":`+c.result+"}\n"))
		if got := k.Handle(toolresult.Response{Tool: "f"}, reply); got != (c.id != "") {
			t.Errorf("%.40s is a handle: %v", c.result, got)
		}
		request := wire.Parse(wire.Client, []byte(`{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"`+c.id+`"}}`+"\n"))
		if r, _ := k.Expect(request); r.Tool != c.tool {
			t.Errorf("%.40s: the tool is %q", c.result, r.Tool)
		}
	}
}
