package serve

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// The system keeps few unsent bytes for a slow client, does not end its connection, and notices a client that is gone,
// on the sockets that attache opens and on the sockets of systemd.
func TestTCPOptions(t *testing.T) {
	s := newTestService(t, cli.Process{Stderr: io.Discard})
	s.settings.Listen = "127.0.0.1:0"
	var systemd net.ListenConfig
	systemd.SetMultipathTCP(false) // as systemd does
	inherited, err := systemd.Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	for _, s.Listeners = range [][]net.Listener{nil, {inherited}} {
		listeners, err := s.listen(t.Context())
		check(t, err)
		client, err := net.Dial("tcp", listeners[0].Addr().String())
		check(t, err)
		defer client.Close()
		accepted, err := (&listener{Listener: listeners[0]}).Accept()
		check(t, err)
		defer accepted.Close()
		socket, err := accepted.(*connection).Conn.(*net.TCPConn).SyscallConn()
		check(t, err)
		for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: 0, unix.TCP_NOTSENT_LOWAT: unsentBytes, unix.TCP_KEEPCNT: keepAlive.Count} {
			check(t, socket.Control(func(fd uintptr) {
				if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || got != want {
					t.Errorf("inherited: %t: option %d is %d, %v; want %d", s.Listeners != nil, option, got, err, want)
				}
			}))
		}
		listeners[0].Close()
	}
}

// A write fails if the client is gone, also if its buffer is full. It does not fail if the client was silent for long.
func TestGoneClient(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	for _, full := range []bool{false, true} {
		client, err := net.Dial("tcp", l.Addr().String())
		check(t, err)
		defer client.Close()
		accepted, err := (&listener{Listener: l}).Accept()
		check(t, err)
		defer accepted.Close()
		c := accepted.(*connection)
		c.patience = time.Millisecond
		write := func(b []byte) error {
			c.looked = time.Time{}
			_, err := c.Write(b)
			return err
		}
		await := func(state string, is func(*unix.TCPInfo) bool) {
			t.Helper()
			socket, err := c.Conn.(*net.TCPConn).SyscallConn()
			check(t, err)
			for end, done := time.Now().Add(time.Minute), false; !done; time.Sleep(time.Millisecond) {
				check(t, socket.Control(func(fd uintptr) {
					info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
					check(t, err)
					done = is(info)
				}))
				if time.Now().After(end) {
					t.Fatalf("full: %t: not %s within a minute", full, state)
				}
			}
		}
		check(t, write([]byte(":\n\n")))
		await("acknowledged", func(info *unix.TCPInfo) bool { return info.Unacked == 0 })
		check(t, write([]byte(":\n\n")))
		if full {
			go func() { _, _ = c.Conn.Write(make([]byte, 64<<20)) }() // the client does not read
			await("full", func(info *unix.TCPInfo) bool { return info.Unacked == 0 && info.Notsent_bytes > 0 })
			await("alive", func(*unix.TCPInfo) bool { return unacknowledged(c.Conn) == 0 })
		}

		// From now on nothing reaches the client.
		socket, err := client.(*net.TCPConn).SyscallConn()
		check(t, err)
		nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // keeps 0 bytes of each packet
		check(t, socket.Control(func(fd uintptr) {
			check(t, unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]}))
		}))
		if !full {
			_, err := c.Conn.Write([]byte(":\n\n"))
			check(t, err)
		}
		await("gone", func(*unix.TCPInfo) bool { return unacknowledged(c.Conn) > c.patience })
		if err := write([]byte(":\n\n")); err != errGone {
			t.Errorf("full: %t: the write got %v, want %v", full, err, errGone)
		}
	}
}
