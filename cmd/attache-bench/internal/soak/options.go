// Package soak uses attache for a long time, and disturbs it: clients of every kind call over
// stdio and HTTP, in sessions with a handshake and without; servers and fronts are killed,
// servers stop for a while or never answer, clients read slowly, cancel, and go away; the
// configuration changes.
//
// Every request has a number of its own. Its answer must be its own result, or an error while
// something on its way was killed. What the server executes it writes to a ledger, in which no
// call may stand twice. When all clients are gone, attache must have as many processes,
// descriptors, goroutines, files and rows as before, and its memory must not have grown.
//
// What is done is random and follows from the seed; when it is done, and so what it meets,
// depends on the machine.
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

// The words with which this program is started again as a server: see [Play].
const (
	Stdio = "bench:soak"
	HTTP  = "bench:soak-http"
)
