//go:build unix

package clientfile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and group of the file that info is of, where they
// are not those of whoever runs attache, as with sudo.
func keepOwner(f *os.File, info fs.FileInfo) error {
	was, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	made, err := f.Stat()
	if err != nil {
		return err
	}
	if is, ok := made.Sys().(*syscall.Stat_t); ok && is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}

// links returns how many names the file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}

// syncDirectory makes the name of a new file survive a crash, on file systems that need it. A
// failure is no fault: the content is safe either way.
func syncDirectory(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
