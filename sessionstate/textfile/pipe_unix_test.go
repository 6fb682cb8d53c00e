//go:build unix

package textfile_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Opening a named pipe would block for ever.
func TestReadNamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := textfile.Read(pipe, textfile.Rules{Max: 1}); !errors.Is(err, textfile.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
}
