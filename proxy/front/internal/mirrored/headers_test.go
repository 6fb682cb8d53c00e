package mirrored

import (
	"net/http"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A body of which a server may read another name than the header has is refused, but not for the
// spelling of an argument that a rule names.
func TestDoubtfulBodies(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for _, row := range []struct{ params, why string }{
		{`"name":"safe","arguments":{"Workspace":"/src"}`, ""},
		{`"name":"safe","arguments":{"workspace":"/src","Workspace":"/src"}`, ""},
		{`"name":"safe","arguments":{"Workspace":"/src"},"name":"drop"`, "the same name"},
		{`"name":"safe","arguments":{"Workspace":"/src"},"Name":"drop"`, "letter case"},
		{`"name":"safe","arguments":{"a":` + deep + `},"name":"drop"`, "deeper than 512"},
		{`"name":"safe","arguments":7`, ""}, // the server refuses it
	} {
		var m wire.Message
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+row.params+`,`+meta+"}}\n"))
		scanner := wire.Scanner{ArgumentNames: [][]string{{"workspace"}}}
		scanner.Look(&m)
		h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"safe"}}
		doubt := m.Ambiguity()
		m.LookEnvelope()
		why := Mismatch(h, &m, "2026-07-28", doubt)
		if (why == "") != (row.why == "") || !strings.Contains(why, row.why) {
			t.Errorf("%.80s: got %q, want %q", row.params, why, row.why)
		}
	}
}

// A server may take a member of params for the one that Mcp-Name repeats, because some ignore letter case.
func TestMismatchOfTwins(t *testing.T) {
	for method, params := range map[string]string{
		"resources/read": `"URI":"drop","uri":"safe"`,
		"tasks/get":      `"taskId":"safe","taskid":"drop"`,
		"prompts/get":    `"name":"safe","Name":"drop"`,
	} {
		var m wire.Message
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+"}}\n"))
		new(wire.Scanner).Look(&m)
		doubt := m.Ambiguity()
		m.LookEnvelope()
		h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}, "Mcp-Name": {"safe"}}
		if got := Mismatch(h, &m, "2026-07-28", doubt); !strings.Contains(got, "letter case") {
			t.Errorf("%s: got %q", params, got)
		}
	}
}
