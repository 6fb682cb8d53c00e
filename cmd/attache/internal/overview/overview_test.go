package overview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/internal/testkit"
)

// TestRenamedProgram reads a file in which this program, which is not called attache, wraps one server with a
// flag.
func TestRenamedProgram(t *testing.T) {
	self, err := os.Executable()
	testkit.Check(t, err)
	servers := map[string]any{
		"wrapped": map[string]any{"command": self, "args": []string{"--trust", "sandboxed", "--", "uvx", "x"}},
		"other":   map[string]any{"command": self + "-other", "args": []string{"--", "uvx", "x"}},
	}
	content, err := json.Marshal(map[string]any{"mcpServers": servers})
	testkit.Check(t, err)
	dir := t.TempDir()
	testkit.Check(t, os.WriteFile(filepath.Join(dir, ".mcp.json"), content, 0o600))
	files := mcpclient.ThisSystem(func(string) string { return "" }).Files(dir)
	at := slices.IndexFunc(files, func(f mcpclient.File) bool { return filepath.Base(f.Path) == ".mcp.json" })
	if at < 0 {
		t.Fatal("no client has a file .mcp.json in a project")
	}
	document, err := clientconfig.Open(files[at])
	testkit.Check(t, err)
	got := newClient(files[at], document)
	if !slices.Equal(got.Wrapped, []string{"wrapped"}) || !slices.Equal(got.Others, []string{"other"}) {
		t.Errorf("wrapped %v, others %v", got.Wrapped, got.Others)
	}
}
