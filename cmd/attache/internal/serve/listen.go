package serve

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// keepAlive detects peers that have disappeared without closing the connection, after 75 s. The method Accept of
// listener sets it on each connection.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4}

// listen returns the listeners for clients: those opened by systemd, or one for serve.listen.
func (s *service) listen(ctx context.Context) ([]net.Listener, error) {
	if len(s.Listeners) == 0 {
		lc := net.ListenConfig{KeepAlive: -1, Control: setTCPOptions}
		lc.SetMultipathTCP(false) // package net uses it by default, but its connections do not inherit TCP_NOTSENT_LOWAT
		l, err := lc.Listen(ctx, "tcp", s.settings.Listen)
		return []net.Listener{l}, err
	}
	for _, l := range s.Listeners {
		if tcp, ok := l.(*net.TCPListener); ok {
			if c, err := tcp.SyscallConn(); err == nil {
				_ = setTCPOptions("", "", c)
			}
		}
	}
	return s.Listeners, nil
}

// notifySystemd tells systemd, if it has started attache with Type=notify, that clients can connect
// and that signals have their meaning: before that, SIGHUP would end attache.
func (s *service) notifySystemd() {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		s.Log.Warn("systemd could not be told that attache serves", "err", err)
	}
}

// reachable returns an address on which other machines reach attache, or "".
func (s *service) reachable() string {
	addresses := []string{s.settings.Listen}
	if len(s.Listeners) > 0 {
		// serve.listen is not used then.
		addresses = nil
	}
	for _, l := range s.Listeners {
		if l.Addr().Network() != "unix" { // the permissions of the file restrict access
			addresses = append(addresses, l.Addr().String())
		}
	}
	if open := slices.IndexFunc(addresses, func(a string) bool { return !config.IsLoopback(a) }); open >= 0 {
		return addresses[open]
	}
	return ""
}
