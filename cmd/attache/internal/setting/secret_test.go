package setting

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for content, want := range map[string]string{"s3cret": "s3cret", " s3cret\r\n": "s3cret", "\ufeffs3cret\n": "s3cret"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (Secret{File: path}).Value(cli.Process{}); got != want || err != nil {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
}
