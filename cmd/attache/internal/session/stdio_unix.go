//go:build unix

package session

import (
	"errors"
	"os"
	"slices"
	"syscall"
)

// pollable returns a file with the same descriptor that uses the runtime's poller, and a function
// that undoes the change. A blocking read blocks a thread; if all processes share one CPU, the
// poller is about ten times faster.
//
// The non-blocking mode belongs to the open file, which other processes may share. So it is set
// only for pipes and sockets, and reset at the end; for a terminal or a regular file, pollable
// returns f. restore keeps f referenced, because its finalizer would close the descriptor.
func pollable(f *os.File) (file *os.File, restore func()) {
	keep := func() {}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f, keep
	}
	fd := int(f.Fd()) // makes the descriptor blocking, which is the mode that restore sets
	if syscall.SetNonblock(fd, true) != nil {
		return f, keep
	}
	return os.NewFile(uintptr(fd), f.Name()), func() {
		_ = syscall.SetNonblock(fd, false)
		_ = f.Name()
	}
}

// isClosed reports whether a read or write of one of the ends failed because the other end of the pipe
// or socket is closed, or the terminal has hung up: then it returns EIO, as a broken disk does.
func isClosed(err error, ends ...any) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EIO) && slices.ContainsFunc(ends, isDevice)
}

func isDevice(end any) bool {
	f, ok := end.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
