//go:build !unix

package session

import (
	"errors"
	"os"
	"syscall"
)

// endingSignals are the signals that end the session. On Windows the second is that the
// console is closed, the user logs off or the system goes down; the process has
// some seconds then.
var endingSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// reloadSignals is empty where there is no SIGHUP.
var reloadSignals []os.Signal

// restartSignals is empty where there is no SIGUSR1.
var restartSignals []os.Signal

// Restart returns an error: here no signal restarts a server.
func Restart(int) error {
	return errors.New("this system has no signal for it: end the server's process, and attache starts it again")
}
