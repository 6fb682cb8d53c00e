package config

import (
	"io"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Only variables whose names look like those of secrets are secrets.
func TestRecordSecrets(t *testing.T) {
	p := cli.Process{Env: []string{"HOME=/home/alice", "GITHUB_TOKEN=gt", "PATH=/bin", "DB_PASSWORD=pw", "X"}, Stdin: strings.NewReader(""), Stdout: io.Discard}
	s := &Settings{Server: ServerSettings{Env: map[string]string{"OPENAI_API_KEY": "ok", "LANG": "C"}}}
	got := Secrets(p, s, []string{"key"})
	if text := strings.Join(got.Values, ","); text != "key,gt,pw,ok" || got.Home != "/home/alice" {
		t.Errorf("secrets %q, home %q", text, got.Home)
	}
}
