//go:build unix

package login

import (
	"os/exec"
	"syscall"
)

// setApart makes a command run in a process group of its own, so that Control-C does not end it.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
