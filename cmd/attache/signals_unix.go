//go:build unix

package main

import (
	"os"
	"syscall"
)

// ending are the signals that are passed on to the server and end the session.
var ending = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
