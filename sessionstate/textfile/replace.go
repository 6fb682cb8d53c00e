package textfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/robustio"
)

// unfinished begins the names of files that Replace has not put in place yet.
const unfinished = ".new-"

// Replace atomically writes data to the file at path, with access for its owner alone: readers
// see the old or the new content, even after the machine fails. The owner stays the same if root
// replaces the file of somebody else. It creates a missing directory, closed to others. If path is a link,
// the link is replaced, not its target. After an error the old file is unchanged. Replace takes no lock: of
// two writers at the same time, the last one wins.
func Replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, unfinished+"*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, KeepOwner(f, path), f.Sync(), f.Close()); err == nil {
		err = robustio.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	SyncDirectory(dir)
	return nil
}

// RemoveUnfinished removes the files that Replace left in dir because its process was killed. Files
// of the last hour stay, because another process may be writing them. Only for a directory of attache's own:
// another program may use such names, too.
func RemoveUnfinished(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), unfinished) && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// SyncDirectory makes the name of a new file in dir survive a crash, on file systems that need it. It
// ignores errors, because the content is safe either way, and some systems cannot sync a directory.
func SyncDirectory(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
