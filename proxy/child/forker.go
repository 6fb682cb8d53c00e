package child

import (
	"os"
	"runtime"
	"sync"
)

// A Forker is a thread of the system that starts processes. What it has started ends with
// it: see the package comment on PR_SET_PDEATHSIG. A program that runs many processes
// shares one among them; else each has a thread of its own, which costs memory.
type Forker struct {
	jobs   chan func()
	closed chan struct{}
	close  sync.Once
}

// NewForker returns a Forker, to be closed when all that it has started is gone.
func NewForker() *Forker {
	f := &Forker{jobs: make(chan func()), closed: make(chan struct{})}
	go f.run()
	return f
}

// run keeps the thread, which ends with the goroutine.
func (f *Forker) run() {
	runtime.LockOSThread()
	for {
		select {
		case job := <-f.jobs:
			job()
		case <-f.closed:
			return
		}
	}
}

// do has the thread do a job. The error is that of the job, or os.ErrClosed.
func (f *Forker) do(job func() error) error {
	done := make(chan error)
	select {
	case f.jobs <- func() { done <- job() }:
		return <-done
	case <-f.closed:
		return os.ErrClosed
	}
}

// Close ends the thread. Nothing can be started any more.
func (f *Forker) Close() { f.close.Do(func() { close(f.closed) }) }
