//go:build unix

package clientfile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and group in info if they differ from those of this process, as they
// do with sudo.
func keepOwner(f *os.File, info fs.FileInfo) error {
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	created, err := f.Stat()
	if err != nil {
		return err
	}
	if got, ok := created.Sys().(*syscall.Stat_t); ok && got.Uid == want.Uid && got.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}

// links returns the number of hard links to the file.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}

// syncDirectory makes the name of a new file survive a crash, on file systems that need it. It
// ignores errors, because the content is safe either way.
func syncDirectory(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
