package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// await waits until the child pid has ended. Nobody else may reap it meanwhile. It waits
// for the child's pidfd in the runtime's poller. Without pidfds, as before Linux 5.3, it
// returns at once; then wait4 waits.
//
// A thread that waits in wait4(2) keeps its processor (GOMAXPROCS) until the runtime's
// monitor takes it away, which may take 10 ms. With two processors of which one was
// busy, that delayed the first message to the child by milliseconds.
func await(pid int) {
	// SysProcAttr.PidFD does not work everywhere: emulators refuse clone flags they do not know.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	_ = unix.SetNonblock(pidfd, true) // package os polls only non-blocking files
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
