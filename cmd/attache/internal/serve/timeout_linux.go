package serve

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledgedTime is how long sent bytes may stay unacknowledged, in milliseconds. Without it
// a broken connection on which comments are written stays open for a quarter of an hour, and so
// does its session.
const unacknowledgedTime = 60_000

// limitUnacknowledged sets that limit on a socket. Connections inherit it from their listener.
func limitUnacknowledged(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledgedTime)
	})
}
