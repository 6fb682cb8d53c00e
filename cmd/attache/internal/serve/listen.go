package serve

import (
	"context"
	"net"
	"time"
)

// keepAlive finds peers that are gone: a connection that was cut says nothing.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4}

// listen returns the listener for clients.
func (s *service) listen(ctx context.Context) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitUnacknowledged}
	return lc.Listen(ctx, "tcp", s.settings.Listen)
}
