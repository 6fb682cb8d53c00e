//go:build unix

package session

import (
	"os"
	"syscall"
)

// endingSignals are the signals that are forwarded to the server and end the session.
var endingSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT}

// reloadSignals are the signals that make attache read the configuration again. attache does not
// need SIGHUP to notice that a terminal was closed, because it then reads the end of input.
var reloadSignals = []os.Signal{syscall.SIGHUP}

// restartSignals are the signals that restart the server.
var restartSignals = []os.Signal{syscall.SIGUSR1}

// Restart makes the attache with this process id restart its server.
func Restart(pid int) error { return syscall.Kill(pid, syscall.SIGUSR1) }
