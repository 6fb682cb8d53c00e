package child

import (
	"cmp"
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
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

// A Process is a started command and all processes that it starts. Its methods
// may be called from any goroutine.
type Process struct {
	opt    Options
	path   string
	input  Input
	stdout *Output
	stderr *stderrCopy
	group  group

	killed chan struct{} // closed when SIGKILL was sent to the group early
	done   chan struct{} // closed when the direct child was reaped
	over   chan struct{} // closed after done, when the group has ended and stderr is complete

	stopOnce sync.Once // starts the ladder
	killOnce sync.Once // closes killed
	overOnce sync.Once // closes over
	signal   atomic.Pointer[forwardedSignal]

	mu     sync.Mutex // guards the following fields
	exit   Exit
	reaped bool      // exit is final, except for Leftover
	stopBy time.Time // when the ladder reaches its end; zero before it was started
}

// Start starts a command in a new process group, with pipes for stdin, stdout
// and stderr. When ctx is done, the process is stopped as by [Process.Stop].
// The process inherits the set of ignored signals. So if a signal such as
// SIGPIPE must not end this process, use signal.Notify and not signal.Ignore.
//
// The error is a *[StartError] if the command cannot be started, and ctx.Err()
// if ctx was already done.
func Start(ctx context.Context, o Options) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := findCommand(o)
	if err != nil {
		return nil, err
	}
	pipes, err := openPipes()
	if err != nil {
		return nil, startError(o, path, err)
	}
	p := newProcess(o, path, pipes)
	started := make(chan error)
	go p.run(ctx, pipes, started)
	err = <-started
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, startError(o, path, err)
	}
	go p.stderr.read()
	return p, nil
}

// Find returns the file that Start would run, without running it. If the file
// does not exist or may not be run, the error is the *[StartError] that Start
// would return.
func Find(o Options) (string, error) {
	path, err := findCommand(o)
	if err != nil {
		return "", err
	}
	if err := mayRun(o, path); err != nil {
		return "", err
	}
	return path, nil
}

func newProcess(o Options, path string, pipes *pipes) *Process {
	return &Process{
		opt:    o.withDefaults(),
		path:   path,
		input:  Input{File: pipes.ours[0]},
		stdout: newOutput(pipes.ours[1]),
		stderr: newStderrCopy(newOutput(pipes.ours[2]), o.Stderr),
		killed: make(chan struct{}),
		done:   make(chan struct{}),
		over:   make(chan struct{}),
	}
}

// Pid returns the process id of the direct child, which is also the id of its
// process group. It may belong to another process once Done is closed.
func (p *Process) Pid() int { return p.group.pid }

// Path returns the path of the file that was started.
func (p *Process) Path() string { return p.path }

// Stdin returns the write end of the process's stdin. If the process does not
// read, a Write blocks until [Process.CloseStdin]. It fails with EPIPE after
// the process closed its end, and with os.ErrClosed after the process ended.
func (p *Process) Stdin() *os.File { return p.input.File }

// CloseStdin closes the write end of the process's stdin, which unblocks a
// Write. It may be called more than once.
func (p *Process) CloseStdin() { p.input.Close() }

// Stdout returns the read end of the process's stdout, for one reader. Read it
// to io.EOF before acting on [Process.Wait]: it may still contain the last
// answers of a process that has ended.
func (p *Process) Stdout() *Output { return p.stdout }

// Tail returns the last lines that the process wrote to stderr, without line
// ends: at most 20 lines and 8 KiB. The text is valid UTF-8 but otherwise as
// written, so it may contain control characters. If none of these lines reports
// an error but an earlier one does, that line and "…" replace the first two.
// The tail is complete after [Process.Wait].
func (p *Process) Tail() []string { return p.stderr.lines() }

// Dropped returns how many bytes of stderr were dropped because Options.Stderr
// blocked or failed.
func (p *Process) Dropped() int64 { return p.stderr.droppedBytes() }

// GuardErr returns nil if the whole process group will end when this process
// ends in any way, and otherwise the reason why it will not. The package
// comment describes what is still guaranteed then; log the reason at debug
// level.
func (p *Process) GuardErr() error { return p.group.guardErr }

// Done returns a channel that is closed when the direct child was reaped. The
// rest of its group may still run, and stdout may still contain output.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process was reaped, its group has ended and its stderr
// is complete, and returns how the process ended. It does not stop anything;
// see [Process.Stop].
func (p *Process) Wait() Exit {
	<-p.over
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}
