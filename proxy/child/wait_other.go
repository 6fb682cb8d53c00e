//go:build unix && !linux

package child

import "syscall"

// A waiter does nothing on this system; see wait_linux.go.
type waiter struct{}

func (*waiter) of(sys *syscall.SysProcAttr) *syscall.SysProcAttr { return sys }
func (*waiter) await()                                           {}
