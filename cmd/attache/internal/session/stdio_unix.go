//go:build unix

package session

import (
	"os"
	"syscall"
)

// pollable returns a file on the same descriptor that Go's poller waits for, and a function that
// undoes the change. A blocking read parks a thread: if all processes share one CPU the poller
// answers about ten times sooner.
//
// The non-blocking mode belongs to the open file, which other processes may share, so it is set
// only for pipes and sockets, and reset at the end; a terminal or a regular file is returned as
// it is. restore keeps f referenced, because its finalizer would close the descriptor.
func pollable(f *os.File) (file *os.File, restore func()) {
	keep := func() {}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f, keep
	}
	fd := int(f.Fd()) // sets the descriptor to blocking, from which we know the way back
	if syscall.SetNonblock(fd, true) != nil {
		return f, keep
	}
	return os.NewFile(uintptr(fd), f.Name()), func() {
		_ = syscall.SetNonblock(fd, false)
		_ = f.Name()
	}
}
