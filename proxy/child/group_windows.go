package child

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"
)

// A group is the direct child and what it starts: a job object that ends with
// our handle to it.
type group struct {
	pid      int
	guardErr error // the child is in no job

	mu      sync.Mutex
	process windows.Handle
	job     windows.Handle // 0: none
	ended   bool
}

// start starts the direct child in the job, so that nothing it starts can be
// outside. Where that is refused, as in a job around us that admits no other, it is
// started without one.
func (g *group) start(path string, o Options, files [3]*os.File) error {
	g.job, g.guardErr = newJob()
	pid, process, err := createProcess(path, o, files, g.job)
	if err != nil && g.job != 0 {
		refused := err
		if pid, process, err = createProcess(path, o, files, 0); err == nil {
			g.guardErr = refused
			g.closeJob()
		}
	}
	if err != nil {
		g.closeJob()
		return err
	}
	g.pid, g.process = pid, process
	return nil
}

// reap waits for the direct child to end.
func (g *group) reap() Exit {
	var code uint32
	if _, err := windows.WaitForSingleObject(g.process, windows.INFINITE); err != nil {
		return Exit{Code: -1}
	}
	if err := windows.GetExitCodeProcess(g.process, &code); err != nil {
		return Exit{Code: -1}
	}
	return Exit{Code: int(code)}
}

// alive reports false: release ends who is left, and nobody can be asked to.
func (g *group) alive() bool { return false }

// signal reports false: there is no signal that a process without a console
// would get.
func (g *group) signal(syscall.Signal) bool { return false }

// killedStatus is the exit status of who is ended by force, as in package os.
const killedStatus = 1

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ended:
	case g.job != 0:
		_ = windows.TerminateJobObject(g.job, killedStatus)
	default:
		_ = windows.TerminateProcess(g.process, killedStatus)
	}
}

// release closes the job, which ends who is still in it.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	_ = windows.CloseHandle(g.process)
	g.closeJob()
}

func (g *group) closeJob() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

// readNow is not called: pipes have no deadlines here, so none is cut.
func readNow(uintptr, []byte) int { return 0 }

func signalName(sig syscall.Signal) string { return sig.String() }
