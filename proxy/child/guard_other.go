//go:build unix && !linux

package child

import "syscall"

// await does nothing on this system; see wait_linux.go.
func await(pid int) {}

// forkHalted starts the direct child. On this system the child cannot be stopped until its
// guard is armed.
func forkHalted(path string, o Options, attr *syscall.ProcAttr) (pid int, resume func(), err error) {
	pid, err = syscall.ForkExec(path, o.Argv, attr)
	return pid, nil, err
}

// A guard kills a process group when this process ends. The kernel of this system cannot
// do that, so a watcher does; see guard_linux.go for the other way.
type guard struct{ watcher *watcher }

func newGuard() (guard, error) { return guard{}, nil }

// arm sets the guard to the group pgid, which must exist.
func (g *guard) arm(pgid int) (err error) {
	g.watcher, err = watchGroup(pgid)
	return err
}

// close ends the watcher. The rest of the group has got SIGKILL before.
func (g *guard) close() {
	g.watcher.dismiss()
	g.watcher = nil
}

// anyRuns returns true: on this system the answer of kill(2) decides. At worst attache
// waits for zombies until the grace is over.
func anyRuns(pgid int) bool { return true }
