package child

import (
	"fmt"
	"syscall"
)

// signalBase is what a shell adds to the number of the signal that ended a
// process to make it an exit status.
const signalBase = 128

// An Exit says how a process ended.
type Exit struct {
	// Code is the exit status, and -1 if there is none: a signal ended the
	// process, or it cannot be known, as of one that not even SIGKILL ended.
	Code int

	// Signal is the signal that ended the process; 0 if none did.
	Signal syscall.Signal

	// Leftover tells that processes of its group outlived the process and had
	// to be ended. It is always false on Windows, where the job ends them.
	Leftover bool
}

// Status is the exit status that passes the end on: the process's own, 128+n
// after signal n, and 1 if it cannot be known.
func (e Exit) Status() int {
	switch {
	case e.Signal != 0:
		return signalBase + int(e.Signal)
	case e.Code < 0:
		return 1
	}
	return e.Code
}

// String says it for an error message: "exit status 3", "signal SIGKILL", and
// "exit status 0xc0000005" for what Windows says of a crash.
func (e Exit) String() string {
	switch {
	case e.Signal != 0:
		return "signal " + signalName(e.Signal)
	case e.Code < 0:
		return "unknown exit status"
	case e.Code > 0xffff:
		return fmt.Sprintf("exit status %#x", e.Code)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}
