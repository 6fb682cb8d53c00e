package child

import (
	"os"
	"syscall"
)

// An Input is our end of the process's stdin.
type Input struct {
	*os.File

	// For TryWrite, where there is one.
	conn  syscall.RawConn
	try   func(fd uintptr) bool
	bytes []byte
	n     int
	err   error
}
