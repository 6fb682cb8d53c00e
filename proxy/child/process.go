package child

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

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
		return "", startError(o, path, err)
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

// startError returns the error of a file that the system did not start.
func startError(o Options, path string, err error) error {
	return &StartError{Command: o.Argv[0], Path: path, Err: err, text: diagnose(o, path, err)}
}
