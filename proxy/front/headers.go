package front

import (
	"fmt"
	"net/http"

	"github.com/attache-mcp/attache/proxy/internal/headertext"
)

// mismatch says in which header a request of revision 2026-07-28 contradicts its body, ""
// if in none. What stands between a client and a server may decide by the headers, so a
// server that goes by the body must refuse what differs (basic/transports/streamable-http).
func (x *exchange) mismatch(p *message) string {
	h := x.r.Header
	if why := compare(h, "Mcp-Protocol-Version", p.revision); why != "" {
		return why
	}
	if why := compare(h, "Mcp-Method", p.m.Get("method").Text()); why != "" {
		return why
	}
	member, required := namedBy(p.m.Method())
	if member == "" {
		return ""
	}
	name := p.m.Get("params", member)
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
