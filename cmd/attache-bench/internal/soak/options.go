// Package soak uses attache for a long time while it disturbs it: clients of every kind call over
// stdio and HTTP, in sessions with and without a handshake; servers and fronts are killed,
// servers stop for a while or never answer, clients read slowly, cancel, and go away; the
// configuration changes.
//
// Every request has a unique number. Its answer must be its own result, or an error if a process
// on the way was killed. The server writes the calls that it executes to a ledger, which must not
// have a call twice. When all clients have gone, attache must have no more processes,
// descriptors, goroutines, files and rows than before, and its memory must not have grown.
//
// The steps are random and follow from the seed; their timing depends on the machine.
package soak

import (
	"io"
	"time"
)

// Options are the options of [Run].
type Options struct {
	Duration time.Duration
	Seed     uint64
	Attache  string   // the program
	Env      []string // of every process
	Out, Log io.Writer
}

// The arguments with which this program is started again as a server: see [Serve].
const (
	Stdio = "bench:soak"
	HTTP  = "bench:soak-http"
)
