package child

import (
	"os"
	"runtime"
	"sync"
)

// A Forker is an operating system thread that starts processes. Its processes end with it:
// see PR_SET_PDEATHSIG in the package comment. A program that runs many processes should
// use one Forker for all of them; otherwise each has its own thread, which takes memory.
type Forker struct {
	jobs   chan func()
	closed chan struct{}
	close  sync.Once
}

// NewForker returns a Forker. Close it when all its processes have ended.
func NewForker() *Forker {
	f := &Forker{jobs: make(chan func()), closed: make(chan struct{})}
	go f.run()
	return f
}

// run runs jobs on one thread, which ends with the goroutine: the runtime ends a thread whose
// goroutine returns while it is locked to it.
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

// do runs a job on the thread. It returns the error of the job, or os.ErrClosed.
func (f *Forker) do(job func() error) error {
	done := make(chan error)
	// jobs has no buffer: a job that run has received runs, even if the Forker is closed meanwhile.
	select {
	case f.jobs <- func() { done <- job() }:
		return <-done
	case <-f.closed:
		return os.ErrClosed
	}
}

// Close ends the thread. It can start no more processes.
func (f *Forker) Close() { f.close.Do(func() { close(f.closed) }) }
