// Package mirrored compares the headers of a request of revision 2026-07-28 with the parts of its
// body that they repeat. A proxy between client and server may decide by the headers, so a server
// that reads the body must refuse a request in which they differ (basic/transports/streamable-http).
package mirrored

import (
	"fmt"
	"net/http"

	"github.com/attache-mcp/attache/proxy/internal/headertext"
	"github.com/attache-mcp/attache/proxy/wire"
)

// doubtful begins the refusal of a body that parsers may read differently. The server behind attache gets no
// headers, so it could act on another name than a proxy has seen in the header.
const doubtful = "the headers cannot be compared with the body: "

// Mismatch describes the first header that differs from the body, "" if there is none. revision is
// the protocol version in the body, and doubt what the scanner found in it: if the server may read
// another name than this package, no header can be compared with it.
func Mismatch(h http.Header, m *wire.Message, revision string, doubt wire.Ambiguity) string {
	// The scan was for the rules of a relay. A twin of a name that only those rules read does not make the headers doubtful.
	if doubt == wire.TwinName {
		doubt = doubtOf(m)
	}
	switch doubt {
	case 0, wire.BadEnvelope, wire.BadCall: // the server refuses the last two
	default:
		return doubtful + doubt.String()
	}
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
	if member != "name" && m.Params().HasTwin(member) { // the scanner has looked for twins of name
		return doubtful + wire.TwinName.String()
	}
	name := m.Get("params", member)
	if !name.IsString() || !required && len(h.Values("Mcp-Name")) == 0 {
		return ""
	}
	return compare(h, "Mcp-Name", name.Text())
}

// doubtOf scans m without the names of arguments that rules read, which need not be in a header.
func doubtOf(m *wire.Message) wire.Ambiguity {
	var scanner wire.Scanner
	var again wire.Message
	again.Reset(wire.Client, m.Line())
	scanner.Look(&again)
	return again.Ambiguity()
}

// namedBy returns the member of params that the header Mcp-Name repeats, or "" if it repeats none. required says that
// the header must be there. The methods tasks/... belong to the extension io.modelcontextprotocol/tasks.
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

// compare describes how a header differs from the body, "" if it does not. A header with two lines differs from any
// body: a proxy may have decided by the other line.
func compare(h http.Header, name, body string) string {
	values := h.Values(name)
	if len(values) == 0 {
		return fmt.Sprintf("the header %s is missing: the body says %q", name, body)
	}
	value, ok := headertext.Decode(values[0])
	if !ok || len(values) > 1 || value != body {
		return fmt.Sprintf("the header %s differs from the body, which says %q", name, body)
	}
	return ""
}
