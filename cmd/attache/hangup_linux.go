package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// hungUp returns a channel that is closed when the other end of f, a pipe or a
// socket, is closed, though what it wrote is still to be read. It is nil for
// anything else. It costs a thread that sleeps in the kernel.
func hungUp(f *os.File) <-chan struct{} {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	gone := make(chan struct{})
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLRDHUP}}
	go func() {
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case err == unix.EINTR:
			case err != nil:
				return
			case fds[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR|unix.POLLNVAL) != 0:
				close(gone)
				return
			}
		}
	}()
	return gone
}
