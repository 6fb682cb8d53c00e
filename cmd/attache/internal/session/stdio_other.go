//go:build !unix

package session

import (
	"errors"
	"os"
	"syscall"
)

// pollable returns f: only Unix descriptors have a non-blocking mode.
func pollable(f *os.File) (file *os.File, restore func()) { return f, func() {} }

// isClosed reports whether a read or write failed because the other end of the pipe is closed.
func isClosed(err error, _ ...any) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // ERROR_BROKEN_PIPE, ERROR_NO_DATA
	return errors.Is(err, brokenPipe) || errors.Is(err, noData)
}
