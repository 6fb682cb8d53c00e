package child

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"
)

// A group is the direct child and what it starts: a job object that ends when its
// handle is closed.
type group struct {
	pid      int
	guardErr error // why the child is in no job

	mu      sync.Mutex
	process windows.Handle
	job     windows.Handle // 0 if there is none
	ended   bool
}

// start starts the direct child in a job, so that everything it starts is in the
// job too. If Windows refuses that, for instance because this process is in a job
// that allows no other, it starts the child without one.
func (g *group) start(path string, o Options, files [3]*os.File) error {
	// Without a job, the child is started all the same: a server that may outlive a crash of attache
	// is better than none.
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

// reap waits for the direct child to end, and returns the fields of its [Exit].
func (g *group) reap() (code int, sig syscall.Signal) {
	var status uint32
	if _, err := windows.WaitForSingleObject(g.process, windows.INFINITE); err != nil {
		return -1, 0
	}
	if err := windows.GetExitCodeProcess(g.process, &status); err != nil {
		return -1, 0
	}
	return int(status), 0
}

// alive returns false: release ends the rest of the group, and no signal could ask
// it to end.
func (g *group) alive() bool { return false }

// signal returns false: a process without a console receives no signals.
func (g *group) signal(syscall.Signal) bool { return false }

// killedStatus is the exit status of a killed process, as in package os.
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

// release closes the job, which ends the processes that are still in it.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true // kill must not use the handles any more
	_ = windows.CloseHandle(g.process)
	g.closeJob()
}

func (g *group) closeJob() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

// detached returns the attributes of a process that does not use this console, is in a new process
// group, and does not belong to the job of this process. If the job forbids that, Windows does not
// start the process.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS | windows.CREATE_BREAKAWAY_FROM_JOB}
}

// readNow is not called: pipes have no deadlines on Windows, so none is cut.
func readNow(uintptr, []byte) int { return 0 }

func signalName(sig syscall.Signal) string { return sig.String() }
