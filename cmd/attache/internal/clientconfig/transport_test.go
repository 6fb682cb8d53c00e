package clientconfig

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// Cline CLI 3 writes command, URL and headers into an object "transport" of the entry.
func TestWrapTransportObject(t *testing.T) {
	for from, want := range map[string]string{
		`{"transport": {"type": "stdio", "command": "node", "args": ["a.js"], "env": {"K": "SECRET"}}, "disabled": true}`://
		`{"transport": {"type": "stdio", "command": "attache", "args": ["--", "node", "a.js"], "env": {"K": "SECRET"}}, "disabled": true}`,
		`{"transport": {"type": "stdio", "command": "node"}}`://
		`{"transport": {"type": "stdio", "command": "attache", "args": ["--","node"]}}`,
		`{"transport": {"type": "streamableHttp", "url": "https://x", "headers": {"Authorization": "SECRET"}}}`://
		`{"transport": {"type": "stdio", "command": "attache", "args": ["--", "https://x"], "env": {"ATTACHE_ENTRY": "url streamableHttp", "ATTACHE_HEADER_Authorization": "SECRET"}}}`,
	} {
		checkBothWays(t, inJSON(from), inJSON(want))
	}
}

// Grok Build has its servers in TOML too, but calls the headers so, and would not read http_headers.
func TestWrapSkipsHeadersOfOtherTOML(t *testing.T) {
	d := mustRead(t, mcpclient.File{Path: "config.toml"}, []byte("[mcp_servers.s]\nurl = \"https://x\"\n[mcp_servers.s.headers]\nA = \"b\"\n"))
	step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]
	if step.Done || !strings.Contains(step.Text, "if the file is of another client") {
		t.Errorf("%+v", step)
	}
}
