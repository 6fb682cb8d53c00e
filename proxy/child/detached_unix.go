//go:build unix

package child

import "syscall"

// detached has a process lead a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
