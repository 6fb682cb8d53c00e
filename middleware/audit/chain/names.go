package chain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rotatedName returns the new name of the full file at path, which contains the number of
// its last line.
func rotatedName(path string, last uint64) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%012d%s", strings.TrimSuffix(path, ext), last, ext)
}

// rotatedFiles returns the files before the one at path, oldest first.
func rotatedFiles(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	var names []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), stem)
		digits, ext := strings.CutSuffix(rest, ext)
		if _, err := strconv.ParseUint(digits, 10, 64); ok && ext && err == nil && len(digits) >= 12 {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	// A number with more digits is greater, because more than 12 digits have no leading zeros.
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return names, nil
}

// Check returns an error if a log cannot be written at path. It writes nothing. The directory
// must exist, and a file at path must be a log that may be written, as must the file of its key.
func Check(path string) error {
	dir, err := os.Stat(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s: make it, or name another file", filepath.Dir(path))
	case err != nil:
		return err
	case !dir.IsDir():
		return fmt.Errorf("%s is not a directory: name another file", filepath.Dir(path))
	}
	key, _, err := openToWrite(keyFile(path))
	if err != nil {
		return err
	}
	if key != nil {
		_ = key.Close()
	}
	f, info, err := openToWrite(path)
	if f == nil {
		if link, _ := os.Lstat(path); err == nil && link != nil && link.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link to a file that does not exist: make that file, or name another", path)
		}
		return err
	}
	defer f.Close()
	if _, err = readEnd(f, info.Size()); err != nil {
		return fmt.Errorf("%s: %w: name another file", path, err)
	}
	return nil
}

// openToWrite opens a file of a log. It returns nil, without an error, if the file does not exist, perhaps
// because another writer is renaming the full file, and could be made.
func openToWrite(path string) (*os.File, fs.FileInfo, error) {
	f, info, err := openRegular(path, os.O_RDWR)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, info, err
	}
	if err := writable(filepath.Dir(path)); err != nil {
		return nil, nil, fmt.Errorf("no file can be made in %s (%w): get permission to write there, or name another file", filepath.Dir(path), err)
	}
	return nil, nil, nil
}
