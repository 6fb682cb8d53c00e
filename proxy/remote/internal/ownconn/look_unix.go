//go:build unix

package ownconn

import "syscall"

// checksIdle reports whether lookAt can detect that the server has closed a connection.
const checksIdle = true

// lookAt sets c.open if the connection is open and has no data to read. It does not block.
func (c *conn) lookAt(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:])
	c.open = err == syscall.EAGAIN
	return true
}
