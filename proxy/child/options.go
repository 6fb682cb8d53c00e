package child

import (
	"cmp"
	"io"
	"time"
)

// Options define what to run and how long to wait for it. For each duration,
// zero means the default and a negative value means no wait at all.
type Options struct {
	// Argv is the command and its arguments. A command without a slash is
	// looked up in the PATH of Env; a relative one is relative to Dir.
	Argv []string

	// Env is the complete environment of the process, as "name=value". Start
	// adds nothing to it; nil is an empty environment.
	Env []string

	// Dir is the working directory; "" is that of this process. The caller sets
	// PWD in Env.
	Dir string

	// Stderr receives a copy of the stderr of the process; nil drops it. Up to
	// 128 KiB are queued for it. If the queue is full, the process waits for
	// Stderr, but not longer than a second: then lines are dropped and counted
	// until Stderr takes bytes again (see [Process.Dropped]). Only one goroutine
	// at a time writes to it.
	Stderr io.Writer

	// Hide, if not nil, returns a text without secrets. [Upstream.Wait] calls it with
	// the last lines of stderr, which clients get.
	Hide func(text string) string

	// Forker starts the process; nil means a new thread for this process.
	Forker *Forker

	// Grace is how long the process may run after its stdin was closed before
	// it gets SIGTERM. Default 1.5 s.
	Grace time.Duration

	// TermGrace is how long it may run after SIGTERM before it gets SIGKILL.
	// Default 300 ms: together with Grace this is less than the 2 s that clients
	// wait for attache.
	TermGrace time.Duration

	// Drain is how long stdout and stderr may stay open after the process
	// ended (a process that left the group may hold them), and how long a
	// blocked Stderr may take to receive the rest. After Stop was called, it is
	// also bounded by the sum of Grace and TermGrace. Default 1 s.
	Drain time.Duration
}

const (
	defaultGrace     = 1500 * time.Millisecond
	defaultTermGrace = 300 * time.Millisecond
	defaultDrain     = time.Second
)

func (o Options) withDefaults() Options {
	o.Grace = max(cmp.Or(o.Grace, defaultGrace), 0)
	o.TermGrace = max(cmp.Or(o.TermGrace, defaultTermGrace), 0)
	o.Drain = max(cmp.Or(o.Drain, defaultDrain), 0)
	return o
}
