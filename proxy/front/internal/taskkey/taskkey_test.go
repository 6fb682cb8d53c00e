package taskkey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A server that makes tasks without end, or with long ids, takes a bounded amount of memory.
func TestTasksAreBounded(t *testing.T) {
	var k Keys
	learn := func(reply string) {
		m := &wire.Message{}
		m.Reset(wire.Server, []byte(reply))
		k.Learn("ada", "key", m)
	}
	const task = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"%s","taskId":"%s"%s}}`
	learn(fmt.Sprintf(task, "task", strings.Repeat("x", maxID), ""))
	learn(fmt.Sprintf(task, "task", "long", `,"text":"`+strings.Repeat("x", maxHandle)+`"`))
	learn(fmt.Sprintf(task, "complete", "done", ""))
	if n := len(k.keys); n != 0 {
		t.Errorf("%d tasks are kept, want none", n)
	}
	for i := range maxTasks + 2 {
		learn(fmt.Sprintf(task, "task", fmt.Sprint(i), ""))
	}
	if n := len(k.keys); n != 2 {
		t.Errorf("%d tasks are kept, want 2", n)
	}
}

// A task has the key of the session that made it, unless another session of the principal has one with that id.
func TestKeyOfTask(t *testing.T) {
	var k Keys
	learn := func(who, key, task string) {
		m := &wire.Message{}
		m.Reset(wire.Server, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":%q}}`, task))
		k.Learn(who, key, m)
	}
	learn("ada", "one", "1")
	learn("ada", "one", "1")
	learn("ada", "one", "2")
	learn("ada", "two", "2")
	learn("ada", "two", "2")
	learn("bob", "three", "1")
	none := func(who string) string { return kept.Text(fmt.Sprintf("%q", who) + "its conversation") }
	for _, row := range []struct{ who, method, params, want string }{
		{"ada", "tasks/get", `{"taskId":"1"}`, "one"},
		{"ada", "tasks/update", `{"taskId":"1"}`, "one"},
		{"ada", "tasks/cancel", `{"taskId":"1"}`, "one"},
		{"bob", "tasks/get", `{"taskId":"1"}`, "three"},
		{"ada", "tasks/get", `{"taskId":"2"}`, none("ada")},
		{"ada", "tasks/get", `{"taskId":1}`, none("ada")},
		{"bob", "tasks/get", `{"taskId":"2"}`, none("bob")},
		{"ada", "tools/call", `{"taskId":"1"}`, none("ada")},
		{"ada", "subscriptions/listen", `{"notifications":{"taskIds":["1","2"]}}`, "one"},
		{"ada", "subscriptions/listen", `{"notifications":{"taskIds":[]}}`, none("ada")},
	} {
		m := &wire.Message{}
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+row.method+`","params":`+row.params+"}\n"))
		m.LookEnvelope()
		if got := k.Of(row.who, m, func(*wire.Message) string { return "its conversation" }); got != row.want {
			t.Errorf("%s %s of %s: %q, want %q", row.method, row.params, row.who, got, row.want)
		}
	}
}
