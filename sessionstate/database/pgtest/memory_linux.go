package pgtest

import "syscall"

// room is how many bytes of memory must be free for files. A cluster takes about 50 MiB, and the
// tests of a package may start ten at once.
const room = 1 << 30

// memory returns a directory whose files are in memory, or "" if it has too little room: a
// container often has 64 MiB.
func memory() string {
	const dir = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < room || syscall.Access(dir, 2) != nil { // 2: may write
		return ""
	}
	return dir
}
