package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A waiter waits for the direct child in the runtime's poller, by the child's pidfd.
//
// A thread that waits in wait4(2) instead keeps the processor it ran on (GOMAXPROCS)
// until the runtime's monitor takes that away, and the monitor looks every 10 ms at
// worst. With two processors of which one is busy, the goroutine that brings the
// child its first message stood still for 1 to 5 ms.
type waiter struct{ pidfd int }

// of returns sys with what lets the waiter wait for the process started with it.
func (w *waiter) of(sys *syscall.SysProcAttr) *syscall.SysProcAttr {
	sys.PidFD = &w.pidfd
	return sys
}

// await returns when the process has ended. Before Linux 5.3 it cannot tell and
// returns at once; then wait4 waits.
func (w *waiter) await() {
	if w.pidfd < 0 {
		return
	}
	_ = unix.SetNonblock(w.pidfd, true) // what makes a file pollable for package os
	file := os.NewFile(uintptr(w.pidfd), "pidfd")
	defer file.Close()
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) (ended bool) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
