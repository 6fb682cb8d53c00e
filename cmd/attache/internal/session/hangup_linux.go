package session

import (
	"os"

	"golang.org/x/sys/unix"
)

// hungUp returns a channel that is closed when the other end of f, a pipe or a socket, is
// closed, even if f has unread data. It returns nil for any other file.
//
// The runtime's poller does not distinguish a hang-up from readable data. So it polls an epoll set
// that reports only hang-ups. A thread that waits in poll(2) would also work, but it would occupy
// one of the runtime's processors during the start, and there may be only two; see await in
// proxy/child.
func hungUp(f *os.File) <-chan struct{} {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	err = unix.EpollCtl(set, unix.EPOLL_CTL_ADD, int(f.Fd()), &unix.EpollEvent{Events: unix.EPOLLRDHUP})
	_ = unix.SetNonblock(set, true) // makes the file pollable for package os
	watched := os.NewFile(uintptr(set), "hangup")
	conn, connErr := watched.SyscallConn()
	if err != nil || connErr != nil {
		watched.Close()
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer watched.Close()
		events := make([]unix.EpollEvent, 1)
		err := conn.Read(func(set uintptr) (done bool) {
			n, err := unix.EpollWait(int(set), events, 0)
			return n > 0 || err != nil && err != unix.EINTR
		})
		if err == nil {
			close(gone)
		}
	}()
	return gone
}

// reads returns a function that reports whether the other end of f, a pipe or a local socket, is
// open. It returns nil for any other file: only a write shows whether a remote peer is there.
func reads(f *os.File) func() bool {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	fd := int(f.Fd())
	if info.Mode()&os.ModeSocket != 0 {
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_UNIX {
			return nil
		}
	} else if info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	return func() bool {
		fds := []unix.PollFd{{Fd: int32(fd)}} // a hang-up is always reported
		n, err := unix.Poll(fds, 0)
		return n == 0 || err != nil || fds[0].Revents&(unix.POLLERR|unix.POLLHUP) == 0
	}
}
