package serve

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledgedTime is how long sent bytes may stay unacknowledged, in milliseconds. Without it
// a cut connection on which comments are written lives for a quarter of an hour, and its session
// with it.
const unacknowledgedTime = 60_000

// limitUnacknowledged sets that time on a socket; connections inherit it from their listener.
func limitUnacknowledged(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledgedTime)
	})
}
