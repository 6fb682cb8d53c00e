package serve

import (
	"context"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// keepAlive detects peers that have disappeared without closing the connection, after 75 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4}

// listen returns the listeners for clients: those opened by systemd, or one for serve.listen.
func (s *service) listen(ctx context.Context) ([]net.Listener, error) {
	if len(s.Listeners) == 0 {
		lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitUnacknowledged}
		l, err := lc.Listen(ctx, "tcp", s.settings.Listen)
		return []net.Listener{l}, err
	}
	for _, l := range s.Listeners {
		// Connections of an inherited listener have keep-alive by default.
		if tcp, ok := l.(*net.TCPListener); ok {
			if c, err := tcp.SyscallConn(); err == nil {
				_ = limitUnacknowledged("", "", c)
			}
		}
	}
	return s.Listeners, nil
}

// notifySystemd tells systemd, if it has started attache with Type=notify, that clients can connect
// and that signals have their meaning: before that, SIGHUP would end attache.
func (s *service) notifySystemd() {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		s.Log.Warn("systemd does not learn that attache serves", "err", err)
	}
}
