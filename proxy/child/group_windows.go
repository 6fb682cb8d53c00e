package child

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is the direct child and what it starts: a job object that ends with
// our handle to it.
type group struct {
	pid      int
	guardErr error // the child is in no job
	proc     *os.Process

	mu    sync.Mutex
	job   windows.Handle
	ended bool
}

// start starts the direct child and puts it into the job. What the child starts
// before it is in there is not in the job.
func (g *group) start(path string, o Options, files [3]*os.File) error {
	env := o.Env
	if env == nil {
		env = []string{} // nil would be ours
	}
	proc, err := os.StartProcess(path, o.Argv, &os.ProcAttr{
		Dir:   o.Dir,
		Env:   env,
		Files: files[:],
		Sys:   &syscall.SysProcAttr{HideWindow: true},
	})
	if err != nil {
		return err
	}
	g.pid, g.proc = proc.Pid, proc
	g.job, g.guardErr = newJob(proc)
	return nil
}

// newJob puts a process into a new job object that dies with its last handle.
func newJob(proc *os.Process) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	if err = killOnClose(job); err == nil {
		err = assign(job, proc)
	}
	if err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func killOnClose(job windows.Handle) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return os.NewSyscallError("SetInformationJobObject", err)
}

func assign(job windows.Handle, proc *os.Process) error {
	var err error
	if e := proc.WithHandle(func(h uintptr) {
		err = windows.AssignProcessToJobObject(job, windows.Handle(h))
	}); e != nil {
		return e
	}
	return os.NewSyscallError("AssignProcessToJobObject", err)
}

// reap waits for the direct child to end.
func (g *group) reap() Exit {
	state, err := g.proc.Wait()
	if err != nil {
		return Exit{Code: -1}
	}
	return Exit{Code: state.ExitCode()}
}

// alive reports false: release ends who is left, and nobody can be asked to.
func (g *group) alive() bool { return false }

// signal reports false: there is no signal that a process without a console
// would get.
func (g *group) signal(syscall.Signal) bool { return false }

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ended:
	case g.job != 0:
		windows.TerminateJobObject(g.job, 1)
	default:
		g.proc.Kill()
	}
}

// release closes the job, which ends who is still in it.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}

// readNow is not called: pipes have no deadlines here, so none is cut.
func readNow(uintptr, []byte) int { return 0 }

func signalName(sig syscall.Signal) string { return sig.String() }

// findCommand returns the file to start, with the PATH and PATHEXT of this
// process.
func findCommand(o Options) (string, error) {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return "", notFound("", fs.ErrInvalid, "no command was given: name the program to run")
	}
	path, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return "", notFound(o.Argv[0], err, "%v (PATH is %s): install it, correct its name or give its full path",
			err, os.Getenv("PATH"))
	}
	return path, nil
}

func diagnose(o Options, path string, err error) string {
	if o.Dir != "" {
		if _, e := os.Stat(o.Dir); e != nil {
			return fmt.Sprintf("working directory: %v: correct it or create it", e)
		}
	}
	return fmt.Sprintf("%s: %v: see that it runs from a command prompt", path, err)
}
