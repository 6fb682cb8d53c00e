//go:build unix

package textfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Opening a named pipe would block for ever.
func TestReadNamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	testkit.Check(t, syscall.Mkfifo(pipe, 0o600))
	if _, _, err := textfile.Read(pipe, textfile.Rules{Max: 1}); !errors.Is(err, textfile.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
}

// Someone who may write in the directory replaces the file with a named pipe after Read has checked it.
func TestReadNamedPipeThatReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.WriteFile(other, []byte("x"), 0o600)
				_ = os.Rename(other, path)
				_ = syscall.Mkfifo(other, 0o600)
				_ = os.Rename(other, path)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	read := make(chan struct{})
	go func() {
		defer close(read)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Error(err)
			return
		}
		defer root.Close()
		for end := time.Now().Add(time.Second / 2); time.Now().Before(end); {
			_, _, _ = textfile.Read(path, textfile.Rules{Max: 1})
			_, _, _ = textfile.ReadIn(root, "f", textfile.Rules{Max: 1})
		}
	}()
	select {
	case <-read:
	case <-time.After(time.Minute):
		t.Error("Read waits for a writer of the pipe")
	}
}
