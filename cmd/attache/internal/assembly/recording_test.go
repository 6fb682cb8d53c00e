package assembly

import (
	"slices"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/record"
)

// Of what a recording says was given only that is taken which says what session it is:
// the file may be another's, and the environment has the user's key in it.
func TestGivenByARecording(t *testing.T) {
	s := config.DefaultSettings(t.TempDir())
	s.Session.EnvPrefixes = []string{"ORBIT"}
	p := RecordedProcess(cli.Process{Env: []string{"ATTACHE_API_KEY=k"}}, record.Header{Given: map[string]string{
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
