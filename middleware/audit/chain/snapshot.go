package chain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// A Snapshot holds the files of a chain at one moment. Processes may continue to write.
type Snapshot struct {
	// Files are in order, the oldest first.
	Files []*SnapshotFile
}

// A SnapshotFile is one file, without lines that are written later.
type SnapshotFile struct {
	Name string
	io.Reader
	f    *os.File
	size int64
}

// Close closes the files.
func (s *Snapshot) Close() {
	for _, f := range s.Files {
		_ = f.f.Close()
	}
}

// Open returns the file at path and those that were renamed before it. If there are none, the
// error wraps fs.ErrNotExist.
func Open(path string) (*Snapshot, error) {
	unlock, err := lockForReading(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	names, err := rotatedFiles(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err == nil || len(names) == 0 {
		names = append(names, path)
	}
	return OpenFiles(names...)
}

// OpenFiles returns a Snapshot of the given files only.
func OpenFiles(paths ...string) (*Snapshot, error) {
	s := &Snapshot{}
	for _, name := range paths {
		f, info, err := openRegular(name, os.O_RDONLY)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.Files = append(s.Files, &SnapshotFile{name, io.NewSectionReader(f, 0, info.Size()), f, info.Size()})
	}
	return s, nil
}

// lockForReading blocks writers until unlock is called. A copy of a log in another place has
// neither a lock nor writers.
func lockForReading(path string) (unlock func(), err error) {
	f, err := os.Open(keyFile(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(f, lockPatience); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", keyFile(path), err)
	}
	return func() { _ = f.Close() }, nil
}
