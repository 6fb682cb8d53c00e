package demo

import (
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// In a container with a read-only file system there may be no directory for temporary files.
func TestNoTemporaryDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the directory has another variable there")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	err := Run(t.Context(), io.Discard, false)
	if err == nil || !strings.Contains(err.Error(), "set TMPDIR") || strings.Contains(err.Error(), "bug") {
		t.Errorf("got %v", err)
	}
}
