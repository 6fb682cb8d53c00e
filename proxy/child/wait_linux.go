package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// await returns when our child pid, which nobody reaps meanwhile, has ended. It waits
// in the runtime's poller, for the child's pidfd. Where there is none, as before
// Linux 5.3, it returns at once; then wait4 waits.
//
// A thread that waits in wait4(2) keeps the processor it ran on (GOMAXPROCS) until
// the runtime's monitor takes that away, and the monitor looks every 10 ms at worst.
// With two processors of which one is busy, the goroutine that brings the child its
// first message stood still for milliseconds.
func await(pid int) {
	// Not SysProcAttr.PidFD: emulators refuse to clone with a flag they do not know.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	_ = unix.SetNonblock(pidfd, true) // what makes a file pollable for package os
	file := os.NewFile(uintptr(pidfd), "pidfd")
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
