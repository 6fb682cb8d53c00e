package pgtest

import "syscall"

// minFree is the number of bytes that must be free. A cluster takes about 50 MiB, and the tests
// of a package may start ten at once.
const minFree = 1 << 30

// memory returns a directory whose files are in memory, or "" if too few bytes are free there: a
// container often has 64 MiB.
func memory() string {
	const dir = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < minFree || syscall.Access(dir, 2) != nil { // 2: may write
		return ""
	}
	return dir
}
