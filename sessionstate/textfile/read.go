package textfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/rogpeppe/go-internal/robustio"
)

var (
	// ErrDirectory is returned for a directory, and ErrNotRegular for a pipe, socket
	// or device. The caller says which setting names the file.
	ErrDirectory  = errors.New("is a directory")
	ErrNotRegular = errors.New("is not a regular file")
	// ErrTooLarge is returned for a file of more than [Rules].Max bytes.
	ErrTooLarge = errors.New("is too large")
)

// Rules say what a file has to be, beyond regular.
type Rules struct {
	// Max is how many bytes the file may have.
	Max int64
	// Closed are the permission bits that must not be set. Windows has no such
	// bits: there the directory has to keep others out.
	Closed fs.FileMode
	// NoLink refuses a symbolic link; otherwise it is followed.
	NoLink bool
	// Owned refuses a file that belongs neither to this user nor to root.
	Owned bool
}

// Read returns the content of the file at path and what the file was when it was
// opened. An error is the system's, an [*fs.PathError], or says what the rules do
// not allow, without the path, so that it can follow it: "is a symbolic link: ...".
func Read(path string, r Rules) ([]byte, fs.FileInfo, error) {
	look := os.Stat
	if r.NoLink {
		look = os.Lstat
	}
	return r.read(path, look, os.Open)
}

// ReadIn is [Read] for a file in a directory. A link that leads out of the directory
// is not followed.
func ReadIn(dir *os.Root, name string, r Rules) ([]byte, fs.FileInfo, error) {
	look := dir.Stat
	if r.NoLink {
		look = dir.Lstat
	}
	return r.read(name, look, dir.Open)
}

func (r Rules) read(path string, look func(string) (fs.FileInfo, error), open func(string) (*os.File, error)) ([]byte, fs.FileInfo, error) {
	// Opening a named pipe waits for a writer, so look first, and again at what was
	// opened.
	before, err := look(path)
	if err != nil {
		return nil, nil, err
	}
	if err := r.check(path, before); err != nil {
		return nil, nil, err
	}
	f, err := open(path)
	for pause := time.Millisecond; busy(err) && pause < patience; pause *= 2 {
		time.Sleep(pause)
		f, err = open(path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if r.NoLink && !os.SameFile(before, info) { // a mounted secret, a link, may turn to its next version
		return nil, nil, errors.New("was replaced while it was opened: try again")
	}
	if err := r.check(path, info); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, r.Max+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > r.Max {
		return nil, nil, fmt.Errorf("%w: it has more than %s", ErrTooLarge, size(r.Max))
	}
	return data, info, nil
}

// patience bounds the pauses of a reader before a file that is being replaced.
const patience = 100 * time.Millisecond

// busy reports whether err may be for a file that another process replaces at this moment, which no
// reader sees on Unix.
func busy(err error) bool {
	return robustio.IsEphemeralError(err) && !errors.Is(err, fs.ErrNotExist)
}

// check refuses what is no regular file, and a file that is not as private as the
// rules want it.
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
		if r.Closed&0o444 == 0 {
			change = "go-w"
		}
		return fmt.Errorf("is open to others (mode %04o): run chmod %s %s", mode.Perm(), change, path)
	}
	return nil
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
