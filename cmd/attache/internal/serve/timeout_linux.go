package serve

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledgedTime is how long sent bytes may stay unacknowledged, in milliseconds. Without it
// a broken connection on which comments are written stays open for a quarter of an hour, and so
// does its session.
const unacknowledgedTime = 60_000

// unsentBytes is how many bytes the system keeps that it has not sent yet. Without it, megabytes wait there
// for a client on a slow line, and a write goes on only when a third of them has been read, which takes
// more than the time that a client has for each part of an answer.
const unsentBytes = 128 << 10

// setTCPOptions sets both on a socket. Connections inherit them from their listener.
func setTCPOptions(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledgedTime)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
