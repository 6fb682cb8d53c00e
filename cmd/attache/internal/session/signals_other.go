//go:build !unix

package session

import (
	"errors"
	"os"
	"syscall"
)

// endingSignals are the signals that end the session. On Windows, SIGTERM means that the console is
// closed, the user logs off or the system shuts down; the process then has some seconds.
var endingSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// reloadSignals is empty, because there is no SIGHUP.
var reloadSignals []os.Signal

// restartSignals is empty, because there is no SIGUSR1.
var restartSignals []os.Signal

// Restart returns an error, because the system has no signal for it.
func Restart(int) error {
	return errors.New("this system has no signal for a restart: end the server's process, and attache starts it again")
}
