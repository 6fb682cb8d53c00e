//go:build !unix

package session

import (
	"os"
	"syscall"
)

// ending are the signals that end the session. On Windows the second is that the
// console is closed, the user logs off or the system goes down; the process has
// some seconds then.
var ending = []os.Signal{os.Interrupt, syscall.SIGTERM}

// rereading has nothing where there is no SIGHUP.
var rereading []os.Signal
