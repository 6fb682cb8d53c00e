//go:build unix

package session

import (
	"os"
	"syscall"
)

// endingSignals are the signals that are forwarded to the server and end the session.
var endingSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT}

// reloadSignals are the signals that make attache read the configuration again. A closed terminal
// shows as the end of input.
var reloadSignals = []os.Signal{syscall.SIGHUP}

// restartSignals are the signals that restart the server.
var restartSignals = []os.Signal{syscall.SIGUSR1}

// Restart makes the attache with that process id restart its server.
func Restart(pid int) error { return syscall.Kill(pid, syscall.SIGUSR1) }
