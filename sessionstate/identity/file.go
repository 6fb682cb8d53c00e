package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// maxFileBytes is room for more than ten thousand keys.
const maxFileBytes = 4 << 20

// fileError is what the system said about file, as an ErrFile.
func fileError(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	hint := "see whether the file and its directory are yours"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "make it with attache key create or correct identity.keys_file"
	}
	return fmt.Errorf("%w: %s: %w: %s", ErrFile, file, err, hint)
}

// parseFile parses data, the text of file.
func parseFile(file string, data []byte) ([]Entry, error) {
	entries, err := parse(data)
	var place *placeError
	switch {
	case err == nil:
		return entries, nil
	case errors.As(err, &place) && place.at != nil:
		return nil, fmt.Errorf("%w: %s:%w", ErrFile, file, place)
	}
	return nil, fmt.Errorf("%w: %s: %w", ErrFile, file, err)
}

// readFile reads file if it is what a key file has to be: regular, and its
// owner's alone.
func readFile(file string) ([]byte, error) {
	// Opening a named pipe would wait for a writer, so look first, and again at
	// what was opened.
	if info, err := os.Stat(file); err != nil {
		return nil, fileError(file, err)
	} else if err := checkInfo(file, info); err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fileError(file, err)
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, fileError(file, err)
	}
	if err := checkInfo(file, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fileError(file, err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%w: %s has more than 4 MiB: take entries of old keys out", ErrFile, file)
	}
	return data, nil
}

// checkInfo refuses what is no file, and a file that others can read or write.
// Windows has no such bits: there the directory has to keep others out.
func checkInfo(file string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file: correct identity.keys_file", ErrFile, file)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("%w: %s is open to others (mode %04o): run chmod 600 %s", ErrFile, file, mode, file)
	}
	return nil
}

// replaceFile puts data in the place of file in one step: whoever reads it sees
// the old text or the new one, also after a loss of power.
func replaceFile(file string, data []byte) (err error) {
	dir := filepath.Dir(file)
	// CreateTemp makes files of mode 0600.
	f, err := os.CreateTemp(dir, "."+filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	syncDir(dir)
	return nil
}

// syncDir makes a rename last. Not every system can do that with a directory; the
// file is whole in any case.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
