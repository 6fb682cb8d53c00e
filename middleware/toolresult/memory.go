package toolresult

import (
	"strings"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Memory holds what is known about the client and the tools of one connection. It is kept when
// the configuration is reloaded. The zero value is empty and ready to use.
type Memory struct {
	mu      sync.Mutex
	client  string
	version string
	known   Client            // the table's entry for the client
	members map[string]bool   // tools whose structuredContent may have [memberName]
	tasks   map[string]string // the tool of each task, by task id

	// The tool of the previous call: its name, and the raw JSON. For the client's direction only.
	last, lastRaw string
}

// Bounds of a Memory.
const (
	maxClientName = 128
	maxMembers    = 10_000
	maxTasks      = 1_000
	maxTaskName   = 256     // of task ids and tool names
	maxToolName   = 1 << 10 // of the names of tools of calls in flight, as the client wrote them
)

// LearnClient reads the client's name and version from initialize, or from a request of the modern
// era: those of one connection may come from several clients of a front.
func (k *Memory) LearnClient(m *wire.Message) {
	info := m.Meta().Get("io.modelcontextprotocol/clientInfo")
	if m.MethodIs("initialize") {
		info = m.Get("params", "clientInfo")
	}
	name, version := info.Get("name"), info.Get("version")
	if !name.IsString() || len(name.Raw) > maxClientName {
		return
	}
	if len(version.Raw) > maxClientName {
		version = wire.Value{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, v := name.View(), version.View(); n != k.client || v != k.version {
		k.client, k.version = strings.Clone(n), strings.Clone(v)
		k.known = ClientOf(k.client) // which makes the whole table, so not for each call
	}
}

// ClientName returns the name that the client sent, "" if none is known.
func (k *Memory) ClientName() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.client
}

// Client returns the table's entry for the client.
func (k *Memory) Client() Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// MaxInstructions returns the number of UTF-16 code units of a server's instructions that the
// client shows, 0 if no limit is known.
func (k *Memory) MaxInstructions() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known.limit(k.version)
}

// hasMember reports whether the results of a tool may have [memberName].
func (k *Memory) hasMember(tool string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.members[tool]
}

// learnTask remembers the tool that a task runs.
func (k *Memory) learnTask(id, tool string) {
	if id == "" || len(id) > maxTaskName || len(tool) > maxTaskName {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tasks == nil || len(k.tasks) >= maxTasks {
		k.tasks = map[string]string{}
	}
	k.tasks[id] = tool
}

// toolName returns the decoded name of a tool, "" if it is too long to be kept until the reply. It
// allocates only if the name is not that of the previous call.
func (k *Memory) toolName(name wire.Value) string {
	if len(name.Raw) > maxToolName {
		return ""
	}
	if string(name.Raw) != k.lastRaw {
		k.last, k.lastRaw = name.Text(), string(name.Raw)
	}
	return k.last
}

// tool returns the tool of the task that m asks for, "" if it is unknown.
func (k *Memory) tool(m *wire.Message) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tasks[m.Get("params", "taskId").Text()]
}
