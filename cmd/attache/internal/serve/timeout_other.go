//go:build !linux

package serve

import "syscall"

// setTCPOptions does nothing: other systems keep their defaults.
func setTCPOptions(_, _ string, _ syscall.RawConn) error { return nil }
