//go:build unix

package clientfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and group in info if they differ from those of this process, as they
// do with sudo. It returns the permissions for f. Only root may give f a group that this user is not in,
// such as the one that "sudo chown" leaves: f then keeps its own group, which gets no more rights than others.
func keepOwner(f *os.File, info fs.FileInfo) (fs.FileMode, error) {
	mode := info.Mode().Perm()
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return mode, nil
	}
	created, err := f.Stat()
	if err != nil {
		return mode, err
	}
	got, ok := created.Sys().(*syscall.Stat_t)
	if ok && got.Uid == want.Uid && got.Gid == want.Gid {
		return mode, nil
	}
	err = f.Chown(int(want.Uid), int(want.Gid))
	if errors.Is(err, fs.ErrPermission) && ok && got.Uid == want.Uid {
		return mode & (0o707 | mode<<3), nil
	}
	return mode, err
}

// links returns the number of hard links to the file.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
