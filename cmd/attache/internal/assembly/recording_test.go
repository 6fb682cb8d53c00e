package assembly

import (
	"slices"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/record"
)

// A replay uses only the facts in a recording that identify the session: anybody may have written
// the file, and the environment contains the user's key.
func TestRecordedProcess(t *testing.T) {
	s := config.DefaultSettings(t.TempDir())
	s.Session.EnvPrefixes = []string{"ORBIT"}
	p := RecordedProcess(cli.Process{Env: []string{"ATTACHE_API_KEY=k"}}, record.Header{Start: map[string]string{
		"--session":                   "s1",
		"--policy":                    "http://127.0.0.1:1/",
		"ATTACHE_TRUST":               "sandboxed",
		"ATTACHE_SESSION_ID":          "s2",
		"ORBIT_WORKSPACE_PATH":        "/w",
		"CLAUDE_CODE_SESSION_ID":      "c1",
		"MCP_TENANT_ID":               "acme",
		"ATTACHE_POLICY":              "http://127.0.0.1:1/",
		"ATTACHE_CONFIG":              "/tmp/theirs.yaml",
		"ATTACHE_API_KEY":             "theirs",
		"ORBIT_API_KEY":               "theirs",
		"HTTPS_PROXY":                 "http://127.0.0.1:1/",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1/",
	}}, s)
	want := []string{"ATTACHE_SESSION=s1", "ATTACHE_SESSION_ID=s2", "ATTACHE_TRUST=sandboxed",
		"CLAUDE_CODE_SESSION_ID=c1", "MCP_TENANT_ID=acme", "ORBIT_WORKSPACE_PATH=/w", "ATTACHE_API_KEY=k"}
	if !slices.Equal(p.Env, want) {
		t.Errorf("the environment is %q, want %q", p.Env, want)
	}
}
