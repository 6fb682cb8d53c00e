package clientconfig

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// Read finds no servers in an empty file. It warns about what clients read differently, and refuses
// what they cannot read.
func TestRead(t *testing.T) {
	for _, test := range []struct {
		path, text, warning, problem string
		entries                      int
	}{
		{"x.json", "", "", "", 0},
		{"x.json", mark + " \n", "", "", 0},
		{"x.json", `{"mcpServers": []}`, "", "", 0},
		{"x.json", `[]`, "", "it is not an object", 0},
		{"x.json", `{"mcpServers": `, "", "it is not valid JSON", 0},
		{"x.json", "{\"mcpServers\": {\"a\": {},\n\"a\": {}}}", `"a" appears twice, in lines 1 and 2`, "", 2},
		{"x.json", "{\"mcpServers\": {\"a\": {}},\n\"mcpServers\": {\"b\": {}}}", `line 2: "mcpServers" appears twice`, "", 2},
		{"x.yaml", "mcpServers:\n  a: {}\n", "", "it is YAML", 0},
		{"x.yml", "mcpServers:\n  a: {}\n", "", "it is YAML", 0},
		{"x.yml", `{"mcpServers": {"a": {}}}`, "", "", 1},
		{"x.toml", "[mcp_servers.a\n", "", "line 1", 0},
	} {
		d, err := Read(mcpclient.File{Path: test.path}, []byte(test.text))
		if test.problem != "" {
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: got %v, want %s", test.text, err, test.problem)
			}
			continue
		}
		if err != nil || len(d.Entries) != test.entries || !strings.Contains(strings.Join(d.Warnings, "\n"), test.warning) || len(d.Warnings) > 0 != (test.warning != "") {
			t.Errorf("%s: got %d entries, warnings %q, error %v", test.text, len(d.Entries), d.Warnings, err)
		}
	}
}

// Bare returns the file as it was before, but not if that would lose attache's own arguments.
func TestBare(t *testing.T) {
	const bare = `{"mcpServers": {"s": {"command": "npx", "args": ["x"]}}}`
	for data, want := range map[string]string{
		bare: bare,
		`{"mcpServers": {"s": {"command": "attache", "args": ["--", "npx", "x"]}}}`:                      bare,
		`{"mcpServers": {"s": {"command": "attache", "args": ["--trust", "direct", "--", "npx", "x"]}}}`: "",
		`{"mcpServers": `: "",
	} {
		if got := Bare(mcpclient.File{Path: "x.json"}, []byte(data), Launch{Command: "attache"}); string(got) != want {
			t.Errorf("%s: got %s", data, got)
		}
	}
}

// New lines in a table end as its other lines do.
func TestWrapKeepsLineEnds(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		config := strings.ReplaceAll("[mcp_servers.s]\n  url = \"https://x\"\n", "\n", end)
		want := strings.ReplaceAll("[mcp_servers.s]\n  command = \"attache\"\n  args = [\"--\", \"https://x\"]\n", "\n", end)
		d := mustRead(t, mcpclient.File{Path: "config.toml"}, []byte(config))
		if got := string(d.Wrap(Launch{Command: "attache"}, all).Content); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
