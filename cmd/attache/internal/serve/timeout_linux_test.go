package serve

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Connections to a client that is gone end, and those to a slow one do not, on the sockets that attache opens and on
// those of systemd.
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
		accepted, err := listeners[0].Accept()
		check(t, err)
		defer accepted.Close()
		socket, err := accepted.(*net.TCPConn).SyscallConn()
		check(t, err)
		for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: unacknowledgedTime, unix.TCP_NOTSENT_LOWAT: unsentBytes} {
			check(t, socket.Control(func(fd uintptr) {
				if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || got != want {
					t.Errorf("inherited: %t: option %d is %d, %v; want %d", s.Listeners != nil, option, got, err, want)
				}
			}))
		}
		listeners[0].Close()
	}
}
