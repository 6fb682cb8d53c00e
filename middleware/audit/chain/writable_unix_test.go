//go:build unix

package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An audit file that cannot be made is known at the start, not when the first calls were not recorded.
func TestCheckDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "made.jsonl"), nil, 0o600)) // by root, for this user
	check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, name := range []string{"audit.jsonl", "made.jsonl"} {
		err := Check(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "get permission to write there, or name another file") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// More room does not help on a read-only file system, as systemd makes one of /etc with ProtectSystem.
func TestRemedy(t *testing.T) {
	for err, want := range map[error]string{syscall.EROFS: "get permission", syscall.EACCES: "get permission", syscall.ENOSPC: "make room"} {
		if got := remedy(fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "audit.jsonl", Err: err})); !strings.HasPrefix(got, want) {
			t.Errorf("%v: got %q, want %s", err, got, want)
		}
	}
}
