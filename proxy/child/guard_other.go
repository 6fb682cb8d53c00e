//go:build unix && !linux

package child

import "syscall"

// forkHalted starts the direct child, which cannot be stopped here until its guard is armed.
func forkHalted(path string, o Options, attr *syscall.ProcAttr) (pid int, resume func(), err error) {
	pid, err = syscall.ForkExec(path, o.Argv, attr)
	return pid, nil, err
}

// A guard ends a process group when this process ends. The kernel here does not do
// it, so a watcher does; see guard_linux.go for one that does.
type guard struct{ watcher *watcher }

func newGuard() (guard, error) { return guard{}, nil }

// arm makes the guard one of the group pgid, which must exist.
func (g *guard) arm(pgid int) (err error) {
	g.watcher, err = watchGroup(pgid)
	return err
}

// close gives up the guard. Whoever is still in the group was sent SIGKILL before.
func (g *guard) close() {
	g.watcher.dismiss()
	g.watcher = nil
}

// anyRuns is asked when kill(2) found somebody, which is taken for the answer
// here: at worst the dead are waited for until the grace is over.
func anyRuns(pgid int) bool { return true }
