package serve

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A refusingListener accepts nothing.
type refusingListener struct {
	net.Listener
	err error
}

func (l refusingListener) Accept() (net.Conn, error) { return nil, l.err }

// An operator is told once a minute that no connection can be accepted, but not that the listener is closed.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		full := &listener{Listener: refusingListener{err: os.NewSyscallError("accept4", syscall.EMFILE)}, log: log}
		for range 5 { // within 2 minutes
			if _, err := full.Accept(); err == nil {
				t.Error("a connection was accepted")
			}
			time.Sleep(30 * time.Second)
		}
		closed := &listener{Listener: refusingListener{err: &net.OpError{Op: "accept", Err: net.ErrClosed}}, log: log}
		if _, err := closed.Accept(); err == nil {
			t.Error("a connection was accepted")
		}
		if n := strings.Count(out.String(), "level=WARN"); n != 3 || !strings.Contains(out.String(), "too many open files") {
			t.Errorf("%d warnings:\n%s", n, &out)
		}
	})
}
