//go:build !unix

package main

import "os"

// ending are the signals that end the session.
var ending = []os.Signal{os.Interrupt}

// rereading has nothing where there is no SIGHUP.
var rereading []os.Signal
