// Package mirrored compares the headers of a request of revision 2026-07-28 with its body, which
// they repeat. What stands between a client and a server may decide by the headers, so a
// server that goes by the body must refuse what differs (basic/transports/streamable-http).
package mirrored

import (
	"fmt"
	"net/http"

	"github.com/attache-mcp/attache/proxy/internal/headertext"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Mismatch says in which header a request contradicts its body, "" if in none. revision is the
// one that the body names.
func Mismatch(h http.Header, m *wire.Message, revision string) string {
	if why := compare(h, "Mcp-Protocol-Version", revision); why != "" {
		return why
	}
	if why := compare(h, "Mcp-Method", m.Get("method").Text()); why != "" {
		return why
	}
	member, required := namedBy(m.Method())
	if member == "" {
		return ""
	}
	name := m.Get("params", member)
	if !name.IsString() || !required && len(h.Values("Mcp-Name")) == 0 {
		return ""
	}
	return compare(h, "Mcp-Name", name.Text())
}

// namedBy returns the member of params that the header Mcp-Name repeats, "" for none.
func namedBy(method string) (member string, required bool) {
	switch method {
	case "tools/call", "prompts/get":
		return "name", true
	case "resources/read":
		return "uri", true
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId", false // some clients leave it out
	}
	return "", false
}

// compare says how a header differs from what the body says, "" if it does not.
func compare(h http.Header, name, body string) string {
	values := h.Values(name)
	if len(values) == 0 {
		return fmt.Sprintf("the header %s is missing: the body says %q", name, body)
	}
	value, ok := headertext.Decode(values[0])
	if !ok || len(values) > 1 || value != body {
		return fmt.Sprintf("the header %s does not say what the body does, %q", name, body)
	}
	return ""
}
