//go:build unix

package textfile

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether a file belongs to the user attache runs as, or to root,
// who could change anything anyway.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int64(stat.Uid) == int64(os.Geteuid()))
}
