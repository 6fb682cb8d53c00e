//go:build unix && !linux && !freebsd

package child

import "syscall"

// attributes returns the attributes of the direct child: it leads a new process group.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
