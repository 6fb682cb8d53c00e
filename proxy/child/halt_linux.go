package child

import (
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// haltTime bounds the wait for the child to stop. It stops at once, unless whoever started
// us had blocked SIGTRAP.
const haltTime = time.Second

// forkHalted starts the direct child as ForkExec does, and has it stop before the first
// instruction of the command. Then resume lets it go on, on the same thread. resume is nil,
// and the child runs, where it must not be traced or the kernel refuses that.
//
// Without this the child runs before its guard is armed, and what it starts meanwhile would
// outlive us if we got SIGKILL in that moment.
func forkHalted(path string, o Options, attr *syscall.ProcAttr) (pid int, resume func(), err error) {
	if mayTrace(seen(o, path)) {
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

// awaitHalt returns when the child has stopped, or ended, which reap is left to find. stopped
// says that it got SIGSTOP, which it may act on later: also one that had stopped by itself, if
// this process stood still meanwhile.
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

// mayTrace reports whether the child may be traced while it is started. A traced process
// gets no privileges from its file, nor from the interpreter of a script, and a script's
// interpreter starts nothing so soon. A filter of system calls may end who asks to be traced,
// in place of refusing it.
func mayTrace(path string) bool {
	if mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err == nil && mode != 0 {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
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

// elfMagic begins the file of a program that needs no other one (elf(5)).
const elfMagic = "\x7fELF"
