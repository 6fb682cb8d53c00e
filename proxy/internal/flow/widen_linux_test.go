package flow

import (
	"os"
	"syscall"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
)

// A pipe is enlarged. What is no pipe stays as it is.
func TestWiden(t *testing.T) {
	const fGetPipeSize = 1032 // F_GETPIPE_SZ, fcntl(2)
	r, w, err := os.Pipe()
	testkit.Check(t, err)
	defer r.Close()
	defer w.Close()
	raw, err := w.SyscallConn()
	testkit.Check(t, err)
	control := func(command, arg uintptr) (size uintptr) {
		_ = raw.Control(func(fd uintptr) { size, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, command, arg) })
		return size
	}
	before := control(fGetPipeSize, 0)
	if control(fSetPipeSize, longPipe) < longPipe {
		t.Skip("a pipe may not be as large")
	}
	control(fSetPipeSize, before)
	Widen(nil, t, r)
	if size := control(fGetPipeSize, 0); size < longPipe {
		t.Errorf("the pipe has %d bytes", size)
	}
}
