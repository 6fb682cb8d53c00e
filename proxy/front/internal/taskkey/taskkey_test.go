package taskkey

import (
	"fmt"
	"strings"
	"testing"

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
