package textfile

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/robustio"
)

// Replace writes data to the file at path, for its owner alone, in one step: a reader, and
// a machine that fails, find the old content or the new one. It makes the directory, closed
// to others, if there is none.
func Replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = robustio.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if d, err := os.Open(dir); err == nil { // so that the new name lasts; not every system can do that
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
