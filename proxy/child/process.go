package child

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what to run and how long to be patient with it. For each
// duration zero means the default and a negative value means no wait at all.
type Options struct {
	// Argv is the command and its arguments. A command without a slash is
	// looked up in the PATH of Env; a relative one is relative to Dir.
	Argv []string

	// Env is the complete environment of the process, as "name=value". Nothing
	// is added to it; nil is an empty environment.
	Env []string

	// Dir is the working directory; "" is the one of this process. PWD in Env
	// is the caller's to set.
	Dir string

	// Stderr gets a copy of what the process writes to its stderr; nil drops
	// it. A Stderr that blocks never blocks the process: up to 128 KiB wait for
	// it, the rest is dropped in whole lines and counted (see
	// [Process.Dropped]). Only one goroutine at a time writes to it.
	Stderr io.Writer

	// Forker starts the process; nil has a thread of its own do it.
	Forker *Forker

	// Grace is how long the process may go on after its stdin was closed before
	// it gets SIGTERM. Default 1.5 s.
	Grace time.Duration

	// TermGrace is how long it may go on after SIGTERM before it gets SIGKILL.
	// Default 300 ms: with Grace it stays under the 2 s clients give us.
	TermGrace time.Duration

	// Drain is how long stdout and stderr may stay open after the process
	// ended, which they do when a process that left its group holds them, and
	// how long a blocked Stderr may take for what it still has to get. Once a
	// Stop has begun, Grace and TermGrace together bound it too. Default 1 s.
	Drain time.Duration
}

const (
	defaultGrace     = 1500 * time.Millisecond
	defaultTermGrace = 300 * time.Millisecond
	defaultDrain     = time.Second
)

func (o Options) withDefaults() Options {
	o.Grace = orDefault(o.Grace, defaultGrace)
	o.TermGrace = orDefault(o.TermGrace, defaultTermGrace)
	o.Drain = orDefault(o.Drain, defaultDrain)
	return o
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

// A Process is a started command with everything it starts. Its methods may be
// called from any goroutine.
type Process struct {
	opt    Options
	path   string
	input  Input
	stdout *Output
	stderr *stderrCopy
	group  group

	// Each is closed once, in this order if at all but for killed.
	killed chan struct{} // SIGKILL went to the group ahead of its time
	done   chan struct{} // the direct child was reaped
	over   chan struct{} // the group ended, stderr is complete

	begin     sync.Once // the ladder
	kills     sync.Once
	ends      sync.Once
	signalled atomic.Pointer[signalled]

	mu     sync.Mutex // guards what follows
	exit   Exit
	reaped bool      // exit is final, but for Leftover
	stopBy time.Time // when the ladder will have reached its end; zero: not begun
}

// Start starts a command in a process group of its own, with pipes for stdin,
// stdout and stderr. When ctx ends, the process is stopped as by
// [Process.Stop]. It inherits which signals this process ignores, so one that
// is not to end this process, such as SIGPIPE, is better notified than ignored.
//
// The error is a *[StartError] if the command cannot be started, and ctx's if
// ctx had ended before.
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
	p.stderr.start()
	return p, nil
}

// Find returns the file that Start would run, without running it. The error is
// the *[StartError] that Start would return if there is none, or if it may not be
// run.
func Find(o Options) (path string, err error) {
	if path, err = findCommand(o); err == nil {
		err = mayRun(o, path)
	}
	if err != nil {
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

// Path returns the file that was started: Argv[0], or where it was found.
func (p *Process) Path() string { return p.path }

// Stdin returns our end of the process's stdin. A Write that the process does
// not read blocks until [Process.CloseStdin]. One after the process closed its
// end fails with EPIPE, and one after the process ended with os.ErrClosed.
func (p *Process) Stdin() *os.File { return p.input.File }

// CloseStdin closes our end of the process's stdin, also under a Write that is
// blocked. Closing it again does nothing.
func (p *Process) CloseStdin() { p.input.Close() }

// Stdout returns our end of the process's stdout, for one reader. Read it to
// io.EOF before acting on [Process.Wait]: the last answers of a process that
// has ended are still in it.
func (p *Process) Stdout() *Output { return p.stdout }

// Tail returns the last lines the process wrote to stderr, without their line
// ends: at most 20 lines and 8 KiB, in valid UTF-8, otherwise as written, so
// the text is the process's word and may hold control characters. If they tell no
// error, one told before them and "…" stand in place of the first two. It is
// complete after [Process.Wait].
func (p *Process) Tail() []string { return p.stderr.lines() }

// Dropped returns how many bytes of stderr were dropped because Options.Stderr
// blocked or failed.
func (p *Process) Dropped() int64 { return p.stderr.droppedBytes() }

// GuardErr returns nil if the whole process group will end when this process ends
// in any way, and otherwise why it will not. It is worth a debug
// line and no more: the package comment says what still holds then.
func (p *Process) GuardErr() error { return p.group.guardErr }

// Done returns a channel that is closed when the direct child has ended and was
// reaped. Its group may not have ended yet, and stdout may hold its last words.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process was reaped, its group has ended and its stderr
// is complete, and returns how the process ended. It asks for nothing to end;
// see [Process.Stop].
func (p *Process) Wait() Exit {
	<-p.over
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}
