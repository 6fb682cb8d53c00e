// Package taskkey makes the keys of the sessions of revision 2026-07-28, and finds the session that has a
// task (extension io.modelcontextprotocol/tasks).
//
// A client may name its conversation only when it calls a tool, as that of
// @modelcontextprotocol/ext-tasks does with the metadata of a call. Its requests about the task must all the
// same reach the server that has it (the extension's specification, "Routing Headers").
package taskkey

import (
	"strconv"
	"sync"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	maxTasks  = 10_000
	maxID     = 256     // bytes of a task's id
	maxHandle = 4 << 10 // bytes of the reply that says that there is a task; others are not looked at
)

// Keys makes keys, and has those of the sessions that made tasks. The zero value is ready to use.
type Keys struct {
	mu   sync.Mutex
	keys map[string]string // by principal and task; "" if several sessions have a task with that id
}

// Of returns the key of the session that a message of a principal belongs to. conversation returns the
// conversation that a message names. The key begins with the principal in quotes, so no conversation, which clients
// choose, leads to the session of another principal.
func (k *Keys) Of(who string, m *wire.Message, conversation func(*wire.Message) string) string {
	who = strconv.Quote(who)
	if id := taskOf(m); id.IsString() && len(id.Raw) <= maxID {
		k.mu.Lock()
		defer k.mu.Unlock()
		if key := k.keys[who+id.Text()]; key != "" {
			return key
		}
	}
	return kept.Text(who + conversation(m))
}

// taskOf returns the id of the task that a request is about, or of the first one that it subscribes to.
func taskOf(m *wire.Message) wire.Value {
	switch m.Method() {
	case "tasks/get", "tasks/update", "tasks/cancel":
		return m.Get("params", "taskId")
	case "subscriptions/listen":
		for id := range m.Get("params", "notifications", "taskIds").Elements() {
			return id
		}
	}
	return wire.Value{}
}

// Learn remembers the key of a session of a principal if a reply in it says that there is a task.
func (k *Keys) Learn(who, key string, reply *wire.Message) {
	if len(reply.Frame()) > maxHandle || !reply.Get("result", "resultType").Equals("task") {
		return
	}
	id := reply.Get("result", "taskId")
	if !id.IsString() || len(id.Raw) > maxID {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// To forget all is simple. A task that is still asked for is then found by its conversation only.
	if k.keys == nil || len(k.keys) >= maxTasks {
		k.keys = map[string]string{}
	}
	at := strconv.Quote(who) + id.Text()
	// Each session has a server of its own, and some number their tasks.
	if other, ok := k.keys[at]; ok && other != key {
		key = ""
	}
	k.keys[at] = key
}
