package toolresult_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Every client of the table has a row in the documentation, with the versions that were measured.
func TestClients(t *testing.T) {
	page, err := os.ReadFile("../../docs/briefing.md")
	testkit.Check(t, err)
	for _, c := range toolresult.Clients() {
		if !regexp.MustCompile("(?m)^\\| .*[0-9]+\\.[0-9]+\\.[0-9]+ \\(`" + c.Name + "`").Match(page) {
			t.Errorf("%s: docs/briefing.md has no row for it with a version", c.Name)
		}
		if c.StructuredAlone && c.Content {
			t.Errorf("%s has both StructuredAlone and Content", c.Name)
		}
	}
}

// A name in the table that ends in "-" is that of every client whose name begins with it.
func TestClientOf(t *testing.T) {
	for name, want := range map[string]string{
		"claude-code": "claude-code", "claude-code-git": "", "qwen-cli-mcp-client-git": "qwen-cli-mcp-client-", "qwen": "", "": "",
	} {
		if got := toolresult.ClientOf(name).Name; got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// MaxInstructions depends on the version that the client sent.
func TestMaxInstructions(t *testing.T) {
	for info, want := range map[string]int{
		`{"name":"claude-code","version":"2.1.330"}`:                                   4096,
		`{"name":"claude-code","version":"2.2.0-beta.1"}`:                              4096,
		`{"name":"claude-code","version":"2.1.329"}`:                                   2048,
		`{"name":"claude-code","version":"next"}`:                                      2048,
		`{"name":"claude-code"}`:                                                       2048,
		`{"name":"gemini-cli-mcp-client","version":"0.61.0"}`:                          0,
		`{"name":"something-else","version":"2.1.330"}`:                                0,
		`{"name":"claude-code","version":"2.1.330-` + strings.Repeat("x", 1000) + `"}`: 2048, // it is not kept
	} {
		k := new(toolresult.Memory)
		for _, info := range []string{`{"name":"claude-code","version":"2.1.331"}`, info} { // the connection of a front may have several clients
			var m wire.Message
			m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":`+info+`}}`))
			new(wire.Scanner).Look(&m)
			k.LearnClient(&m)
		}
		if got := k.MaxInstructions(); got != want {
			t.Errorf("%s: %d, want %d", info, got, want)
		}
	}
}

// The layers ask for the client at each call, so that allocates nothing. A front's connection may have
// several clients.
func TestClientIsKept(t *testing.T) {
	var k toolresult.Memory
	for _, c := range []struct{ name, want string }{
		{"other", ""}, {"codex-mcp-client", "codex-mcp-client"}, {"claude-code", "claude-code"}, {"other", ""},
	} {
		var m wire.Message
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"`+c.name+`"}}}`))
		new(wire.Scanner).Look(&m)
		k.LearnClient(&m)
		if got := k.Client().Name; got != c.want {
			t.Errorf("%s is %q", c.name, got)
		}
		if n := testing.AllocsPerRun(100, func() { _ = k.Client() }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
