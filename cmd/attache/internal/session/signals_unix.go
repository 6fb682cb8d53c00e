//go:build unix

package session

import (
	"os"
	"syscall"
)

// ending are the signals that are passed on to the server and end the session.
var ending = []os.Signal{syscall.SIGTERM, syscall.SIGINT}

// rereading is the signal that has the configuration read again. That a terminal
// was closed shows as the end of input.
var rereading = []os.Signal{syscall.SIGHUP}

// restarting is the signal that has the server restarted.
var restarting = []os.Signal{syscall.SIGUSR1}

// Restart has the attache that is a process restart its server.
func Restart(pid int) error { return syscall.Kill(pid, syscall.SIGUSR1) }
