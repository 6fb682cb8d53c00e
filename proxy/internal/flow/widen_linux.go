package flow

import "syscall"

const (
	fSetPipeSize = 1031 // F_SETPIPE_SZ, fcntl(2)
	// longPipe is what a pipe holds once a long line has passed through it, in
	// bytes. The default of 64 KiB makes two processes take turns 64 times for
	// 4 MiB. It stays far below the 64 MiB that all pipes of a user may take
	// (pipe-user-pages-soft), past which new pipes get 8 KiB.
	longPipe = 256 << 10
)

// Widen enlarges the pipes that a long line passes through. An end that is not a pipe, or
// that may not grow, stays as it is.
func Widen(ends ...any) {
	for _, e := range ends {
		f, ok := e.(syscall.Conn)
		if !ok {
			continue
		}
		if c, err := f.SyscallConn(); err == nil {
			c.Control(func(fd uintptr) {
				syscall.Syscall(syscall.SYS_FCNTL, fd, fSetPipeSize, longPipe)
			})
		}
	}
}
