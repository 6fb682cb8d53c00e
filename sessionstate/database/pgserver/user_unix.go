//go:build unix

package pgserver

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// attributes returns the attributes of the processes of a cluster. Each process has its own process
// group, so that signals from a terminal do not reach it. If this process runs as root, as which
// PostgreSQL refuses to run, they run as another user, to whom attributes gives dir.
func attributes(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{Setpgid: true}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			as := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			return &syscall.SysProcAttr{Setpgid: true, Credential: as}, os.Chown(dir, int(uid), int(gid))
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
