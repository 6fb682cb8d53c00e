//go:build unix && !linux && !freebsd

package child

import "syscall"

// attributes: the direct child leads a group of its own.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
