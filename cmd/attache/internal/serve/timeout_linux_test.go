package serve

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Connections to a client that is gone end, on the sockets that attache opens and on those of systemd.
func TestUnacknowledgedTime(t *testing.T) {
	s := newTestService(t, cli.Process{Stderr: io.Discard})
	s.settings.Listen = "127.0.0.1:0"
	var systemd net.ListenConfig
	systemd.SetMultipathTCP(false) // as systemd does
	inherited, err := systemd.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, s.Listeners = range [][]net.Listener{nil, {inherited}} {
		listeners, err := s.listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		socket, err := listeners[0].(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if errControl := socket.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); err != nil || errControl != nil {
			t.Fatal(err, errControl)
		}
		if got != unacknowledgedTime {
			t.Errorf("inherited: %t: sent bytes may be unacknowledged for %d ms", s.Listeners != nil, got)
		}
		listeners[0].Close()
	}
}
