package clientconfig

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// TestOwn checks the parts of wrapped entries: attache's own arguments, the server and the variables.
func TestOwn(t *testing.T) {
	for _, test := range []struct{ file, text, want string }{
		{"x.json", `{"mcpServers": {"s": {"command": "/opt/attache", "args": ["--trust", "direct", "--", "uvx", "x"], "env": {"A": "b", "C": "d"}}}}`,
			"--trust direct | uvx x | A=b C=d"},
		{"x.json", `{"mcpServers": {"s": {"command": "npx", "args": ["-y", "attache-mcp", "--session", "s1", "--", "https://x"]}}}`, "--session s1 | https://x | "},
		{"x.json", `{"mcpServers": {"s": {"command": "cmd", "args": ["/c", "attache", "--", "uvx"]}}}`, " | uvx | "},
		{"x.json", `{"mcpServers": {"s": {"command": "attache-next", "args": ["teams", "--trust", "direct"]}}}`, "--trust direct |  | "},
		{"x.json", `{"mcpServers": {"s": {"command": "uvx", "args": ["--", "x"]}}}`, " |  | "},
		{"x.json", `{"mcpServers": {"s": null}}`, " |  | "},
		{"x.toml", "[mcp_servers.s]\ncommand = \"attache\"\nargs = [\"--scope\", \"a\", \"--\", \"uvx\"]\n[mcp_servers.s.env]\nA = \"b\"\n", "--scope a | uvx | A=b"},
	} {
		d := mustRead(t, mcpclient.File{Path: test.file}, []byte(test.text))
		e, l := d.Entries[0], Launch{Command: "/opt/attache"}
		parts := []string{strings.Join(e.Own(l), " "), strings.Join(e.Behind(l), " "), strings.Join(e.Env(), " ")}
		if got := strings.Join(parts, " | "); got != test.want {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
}
