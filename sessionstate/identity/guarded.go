package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// guarded is a kind of file that decides who somebody is, and what such a file has
// to be.
type guarded struct {
	failure error // what errors wrap, nil if the caller wraps them
	setting string
	max     int64
	// closed are the bits of the mode that must not be set, and mode the one to
	// give it.
	closed fs.FileMode
	mode   string
	links  bool // a symbolic link is followed
	owned  bool // it must be ours or root's
}

var (
	// keySetFile is public, but whoever can write it can be anybody.
	keySetFile = guarded{setting: "identity.jwt.jwks", max: maxKeySetBytes, closed: 0o022, mode: "go-w", links: true, owned: true}
	// Tokens are mounted by links (Kubernetes turns one to the next).
	tokenFile   = guarded{failure: ErrTokenFile, setting: "the path of the token file", max: maxTokenBytes, closed: 0o077, mode: "600", links: true}
	sessionFile = guarded{failure: ErrSessionFile, setting: "the path of the session file", max: maxSessionBytes, closed: 0o077, mode: "600", owned: true}
)

// read returns the text of file and what it was when it was opened.
func (g guarded) read(file string) ([]byte, fs.FileInfo, error) {
	look := os.Lstat
	if g.links {
		look = os.Stat
	}
	// Opening a named pipe would wait for a writer, so look first, and again at
	// what was opened.
	before, err := look(file)
	if err != nil {
		return nil, nil, g.broken(file, err)
	}
	if err := g.check(file, before); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, g.broken(file, err)
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, nil, g.broken(file, err)
	}
	if !g.links && !os.SameFile(before, info) {
		return nil, nil, g.fault(file, "was replaced while it was opened: try again")
	}
	if err := g.check(file, info); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, g.max+1))
	if err != nil {
		return nil, nil, g.broken(file, err)
	}
	if int64(len(data)) > g.max {
		return nil, nil, g.fault(file, fmt.Sprintf("has more than %d KiB: see whether it is the right file", g.max>>10))
	}
	return data, info, nil
}

// check refuses what is no file, and a file that others can read or write.
// Windows has no such bits: there the directory has to keep others out.
func (g guarded) check(file string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return g.fault(file, "is a symbolic link: correct "+g.setting+" to the file itself")
	case !mode.IsRegular():
		return g.fault(file, "is not a regular file: correct "+g.setting)
	case g.owned && !isOurs(info):
		return g.fault(file, "belongs to another user: make it yours or root's")
	case runtime.GOOS != "windows" && mode.Perm()&g.closed != 0:
		return g.fault(file, fmt.Sprintf("is open to others (mode %04o): run chmod %s %s", mode.Perm(), g.mode, file))
	}
	return nil
}

// broken is what the system said about file.
func (g guarded) broken(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if g.failure == nil {
		return err
	}
	hint := "see whether the file and its directory are yours"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "write it or correct " + g.setting
	}
	return fmt.Errorf("%w: %s: %w: %s", g.failure, file, err, hint)
}

// fault is what is wrong with file.
func (g guarded) fault(file, reason string) error {
	if g.failure == nil {
		return errors.New("it " + reason)
	}
	return fmt.Errorf("%w: %s %s", g.failure, file, reason)
}
