package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/robustio"
)

var (
	// ErrDirectory is returned for a directory, and ErrNotRegular for a pipe, socket
	// or device. The caller adds the setting that names the file.
	ErrDirectory  = errors.New("is a directory")
	ErrNotRegular = errors.New("is not a regular file")
	// ErrTooLarge is returned for a file of more than [Rules].Max bytes.
	ErrTooLarge = errors.New("is too large")
)

// Rules are requirements for a file. It must also be regular.
type Rules struct {
	// Max is the maximum size in bytes.
	Max int64
	// Closed are the permission bits that must not be set. Windows has no such
	// bits: there the directory has to keep others out.
	Closed fs.FileMode
	// NoLink refuses a symbolic link as the last element of the path; otherwise it is followed. Links
	// before that are always followed.
	NoLink bool
	// Owned refuses a file that belongs neither to this user nor to root.
	Owned bool
}

// openFlags open a named pipe, which may replace a file after it was checked, without waiting for a
// writer.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// Read returns the content of the file at path, and its FileInfo from before it was read. An
// error is an [*fs.PathError] of the system or a broken rule. The latter does not contain the
// path, so that it can follow the path: "is a symbolic link: ...".
func Read(path string, r Rules) ([]byte, fs.FileInfo, error) {
	stat := os.Stat
	if r.NoLink {
		stat = os.Lstat
	}
	return r.read(path, stat, func(path string) (*os.File, error) { return os.OpenFile(path, openFlags, 0) })
}

// ReadIn is [Read] for a file in a directory. It does not follow links out of the directory.
func ReadIn(dir *os.Root, name string, r Rules) ([]byte, fs.FileInfo, error) {
	stat := dir.Stat
	if r.NoLink {
		stat = dir.Lstat
	}
	return r.read(name, stat, func(name string) (*os.File, error) { return dir.OpenFile(name, openFlags, 0) })
}

func (r Rules) read(path string, stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error)) ([]byte, fs.FileInfo, error) {
	// Opening a device may have effects, so check the file before opening it, and again after that.
	before, err := stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := r.check(path, before); err != nil {
		return nil, nil, err
	}
	f, err := open(path)
	for pause := time.Millisecond; busy(err) && pause < maxPause; pause *= 2 {
		time.Sleep(pause)
		f, err = open(path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	// With NoLink, this also finds a link that was put there after the check, and was followed.
	if r.NoLink && !os.SameFile(before, info) { // a link, such as a mounted secret, may change its target
		return nil, nil, errors.New("was replaced while it was opened: try again")
	}
	if err := r.check(path, info); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, r.Max+1)) // the size in info may be out of date
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > r.Max {
		return nil, nil, fmt.Errorf("%w: it has more than %s", ErrTooLarge, size(r.Max))
	}
	return data, info, nil
}

// TrimMark returns text without a byte order mark. Some Windows editors and PowerShell write one at the start of a
// file.
func TrimMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// maxPause bounds the pauses while another process replaces the file or has a lease on it.
const maxPause = 100 * time.Millisecond

// busy reports whether err may mean that another process is replacing the file, which does not happen
// on Unix, or has a lease on it, as file servers have, and is about to give that up.
func busy(err error) bool {
	return robustio.IsEphemeralError(err) && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EAGAIN)
}

// check returns an error unless the file is regular and as private as the rules require.
func (r Rules) check(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return errors.New("is a symbolic link: name the file itself")
	case mode.IsDir():
		return ErrDirectory
	case !mode.IsRegular():
		return ErrNotRegular
	case r.Owned && !isOurs(info):
		return errors.New("belongs to another user: make it yours or root's")
	case runtime.GOOS != "windows" && mode.Perm()&r.Closed != 0:
		change := "600"
		if r.Closed&0o444 == 0 { // only writing is forbidden
			change = "go-w"
		}
		return fmt.Errorf("is open to others (mode %04o): run chmod %s %s", mode.Perm(), change, path)
	}
	return nil
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
