package clientconfig

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

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
		plan := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(inJSON(from))).Wrap(Launch{Command: "attache"}, all)
		if diff := gocmp.Diff(inJSON(want), string(plan.Content)); diff != "" || !plan.Steps[0].Done {
			t.Errorf("%s: %+v\n%s", from, plan.Steps[0], diff)
		}
		for _, line := range plan.Diff(nil) {
			if strings.Contains(line.Text, "SECRET") {
				t.Errorf("%s: the diff has a secret: %s", from, line.Text)
			}
		}
		back := mustRead(t, mcpclient.File{Path: "x.json"}, plan.Content).Unwrap(Launch{Command: "attache"}, all)
		if diff := gocmp.Diff(inJSON(from), string(back.Content)); diff != "" {
			t.Errorf("%s: not restored\n%s", from, diff)
		}
	}
}

func TestWrapSkipsTransportObject(t *testing.T) {
	for from, want := range map[string]string{
		`{"transport": {"type": "sse", "url": "https://x"}}`:                              "it uses the older transport HTTP+SSE",
		`{"transport": {"type": "streamableHttp", "url": "https://x"}, "oauth": {}}`:      "it is remote, and the client logs in to it",
		`{"transport": {"type": "stdio"}}`:                                                "it has no command",
		`{"transport": {"type": "stdio", "command": "a"}, "transport": {"command": "b"}}`: `"transport" appears twice`,
		`{"transport": {"command": "a"}, "command": "b"}`:                                 "it has a transport and a command",
		`{"transport": {"command": "a"}, "url": "https://x"}`:                             "it has a transport and a url",
	} {
		d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(inJSON(from)))
		if step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]; step.Done || !strings.HasPrefix(step.Text, want) {
			t.Errorf("%s: %+v", from, step)
		}
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
