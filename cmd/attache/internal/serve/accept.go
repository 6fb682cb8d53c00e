package serve

import (
	"errors"
	"log/slog"
	"net"
	"time"
)

// acceptPause is the time between two warnings of an acceptor.
const acceptPause = time.Minute

// An acceptor warns that no connection can be accepted, usually because too many files are open. The
// HTTP server tries again and logs that only at debug level, and clients see nothing but a delay.
type acceptor struct {
	net.Listener
	log    *slog.Logger
	warned time.Time // used by one goroutine, in which the HTTP server accepts
}

// Accept implements net.Listener.
func (a *acceptor) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && (a.warned.IsZero() || time.Since(a.warned) >= acceptPause) {
		a.warned = time.Now()
		a.log.Warn("no connection can be accepted now, so new clients wait: if too many files are open, raise the limit (ulimit -n)", "err", err)
	}
	return c, err
}
