package child

import (
	"fmt"
	"syscall"
)

// An Exit describes how a process ended.
type Exit struct {
	// Code is the exit status, or -1 if a signal ended the process or its status
	// is unknown, for instance because not even SIGKILL ended it.
	Code int

	// Signal is the signal that ended the process, 0 for none.
	Signal syscall.Signal

	// Leftover reports that processes of its group outlived the process and had
	// to be ended. It is always false on Windows, where the job ends them.
	Leftover bool
}

// Status returns the exit status for a program that ends because this process
// ended: the status of the process, 128+n after signal n, and 1 if it is unknown.
func (e Exit) Status() int {
	switch {
	case e.Signal != 0:
		return 128 + int(e.Signal) // as a shell does
	case e.Code < 0:
		return 1
	}
	return e.Code
}

// String returns text for an error message: "exit status 3", "signal SIGKILL", or
// "exit status 0xc0000005" after a crash on Windows.
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
