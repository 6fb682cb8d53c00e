package child

import "syscall"

// attributes: the direct child leads a group of its own, and the kernel ends it
// with us (PROC_PDEATHSIG_CTL).
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
