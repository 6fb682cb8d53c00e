//go:build linux || freebsd

package child

import "syscall"

// attributes: the direct child leads a group of its own, and the kernel ends it with
// us: on Linux with the thread that forked it (PROC_PDEATHSIG_CTL on FreeBSD).
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
