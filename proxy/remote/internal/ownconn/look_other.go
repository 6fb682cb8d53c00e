//go:build !unix

package ownconn

// checksIdle says that a look can tell whether the other end has closed a connection.
const checksIdle = false

func (c *conn) lookAt(uintptr) bool { return true }
