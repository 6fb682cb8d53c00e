package child

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached has a process run without our console, in a group of its own, and outside of a job
// that ends with us, where that job lets it.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS | windows.CREATE_BREAKAWAY_FROM_JOB}
}
