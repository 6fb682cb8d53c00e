//go:build unix

package status

import (
	"os"
	"syscall"
)

// isOwn reports whether a directory exists and belongs to this user.
func isOwn(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(owner.Uid) == int64(os.Geteuid())
}
