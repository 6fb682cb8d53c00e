package child

import (
	"os"
	"syscall"
)

// An Input is the write end of the process's stdin.
type Input struct {
	*os.File

	// Used by TryWrite, which only Linux has.
	conn  syscall.RawConn
	try   func(fd uintptr) bool
	bytes []byte
	n     int
	err   error
}
