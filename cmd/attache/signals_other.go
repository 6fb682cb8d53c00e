//go:build !unix

package main

import "os"

// ending are the signals that end the session.
var ending = []os.Signal{os.Interrupt}
