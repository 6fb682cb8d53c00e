//go:build linux || freebsd

package child

import "syscall"

// attributes returns the attributes of the direct child: it leads a new process group, and
// the kernel kills it when this process ends (PROC_PDEATHSIG_CTL on FreeBSD), on Linux when
// the thread that forked it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
