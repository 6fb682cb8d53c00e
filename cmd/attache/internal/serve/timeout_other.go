//go:build !linux

package serve

import (
	"net"
	"syscall"
	"time"
)

// setTCPOptions does nothing: other systems keep their defaults.
func setTCPOptions(_, _ string, _ syscall.RawConn) error { return nil }

// unacknowledged returns 0: other systems end a connection when they have repeated the bytes often enough.
func unacknowledged(net.Conn) time.Duration { return 0 }
