package child

import (
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// haltTime bounds the wait for the child to stop. It stops at once, unless the parent of this
// process had blocked SIGTRAP.
const haltTime = time.Second

// forkHalted starts the direct child as ForkExec does, and stops it before the first
// instruction of the command. Call resume on the same thread to continue it. resume is nil,
// and the child runs, if it must not be traced or the kernel refuses tracing.
//
// Otherwise the child would run before its guard is armed, and what it starts in that time
// would outlive this process if it got SIGKILL in the same moment.
func forkHalted(path string, o Options, attr *syscall.ProcAttr) (pid int, resume func(), err error) {
	if mayTrace(resolve(o, path)) {
		attr.Sys.Ptrace = true
		if pid, err = syscall.ForkExec(path, o.Argv, attr); err == nil {
			stopped := awaitHalt(pid)
			return pid, func() {
				_ = syscall.PtraceDetach(pid) // it may have been killed
				if stopped {
					_ = syscall.Kill(pid, syscall.SIGCONT)
				}
			}, nil
		}
		attr.Sys.Ptrace = false
	}
	pid, err = syscall.ForkExec(path, o.Argv, attr)
	return pid, nil, err
}

// awaitHalt waits until the child has stopped or ended; reap detects the latter. stopped
// reports that awaitHalt sent SIGSTOP, which may take effect later. It may have been sent to a
// child that had already stopped, if this process itself was suspended.
func awaitHalt(pid int) (stopped bool) {
	over := make(chan struct{})
	bound := time.AfterFunc(haltTime, func() {
		defer close(over)
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	})
	for unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	if bound.Stop() {
		return false
	}
	<-over
	return true
}

// mayTrace reports whether the child may be traced while it starts. A traced process gets no
// privileges from its file or from the interpreter of a script. A script need not be traced,
// because its interpreter does not start other processes so early. A filter of system calls
// may kill a process that asks to be traced.
func mayTrace(path string) bool {
	if mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err == nil && mode != 0 {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return false
	}
	if _, err = unix.Getxattr(path, "security.capability", nil); err == nil {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	magic := make([]byte, len(elfMagic))
	_, err = io.ReadFull(file, magic)
	return err == nil && string(magic) == elfMagic
}

// elfMagic begins the file of a program that needs no interpreter (elf(5)).
const elfMagic = "\x7fELF"
