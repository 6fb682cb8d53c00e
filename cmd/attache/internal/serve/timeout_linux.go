package serve

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unsentBytes is how many bytes the system keeps that it has not sent yet. Without it, megabytes wait there
// for a client on a slow line, and a write goes on only when a third of them has been read, which takes
// more than the time that a client has for each part of an answer.
const unsentBytes = 128 << 10

// setTCPOptions sets this limit on a socket. Connections inherit it from their listener.
//
// It does not set TCP_USER_TIMEOUT, which tells Linux to end the connection of a client that is gone: Linux 6.18 then
// also resets the connection of a client that only reads slowly. Linux notes when it first asks a client with a full
// buffer whether there is room again (icsk_probes_tstamp). The note stays if the client then makes room for less than
// the next packet. When the buffer is full again, and the note is older than the timeout, the first question ends the
// connection, after 200 ms, and the client loses the rest of its answer.
func setTCPOptions(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}

// unacknowledged returns how long ago the peer of a connection last acknowledged something. It returns 0 if the
// peer has acknowledged everything and, with a full buffer, answers whether it can take more.
func unacknowledged(c net.Conn) (t time.Duration) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	socket, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = socket.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		// Even a live peer has not answered the latest probe for a moment.
		if err == nil && (info.Unacked > 0 || info.Probes > 1) {
			t = time.Duration(info.Last_ack_recv) * time.Millisecond
		}
	})
	return t
}
