//go:build unix

package textfile

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether a file belongs to the user of this process, or to root, who can change
// every file anyway.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int64(stat.Uid) == int64(os.Geteuid()))
}

// KeepOwner gives f, which this process has just created, the owner and group of the file at path, if
// this process is root and that file belongs to somebody else, as with sudo. Otherwise its owner
// could no longer read it.
func KeepOwner(f *os.File, path string) error {
	info, err := os.Lstat(path)
	if err != nil || os.Geteuid() != 0 {
		return nil // a new file belongs to whoever creates it, and only root can give one away
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || !info.Mode().IsRegular() {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}
