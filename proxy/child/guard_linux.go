package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A guard makes the kernel send SIGKILL to a process group when this process
// ends, for whatever reason. It has two pipes, which carry no data and which no child
// inherits. Each end of a pipe is set to signal the group when its state changes
// (F_SETOWN, F_SETSIG, O_ASYNC). When this process ends, the kernel closes its
// descriptors. When it has closed one end of a pipe, the other end has no peer any
// more and signals. No manual specifies which end the kernel closes first, so both
// are set.
//
// Each pipe signals once, and the group needs two signals. Linux 6.18 signals the
// members of a group one after another, the youngest first. If an older member forks
// in that time, the new process gets no signal. The second signal reaches it, unless
// it forks while that one is sent.
//
// The child cannot hold one of the ends: it may close it, and PR_SET_PDEATHSIG may
// kill it before the descriptors of this process are closed.
//
// The kernel keeps a reference to the group and not its number, so a guard never
// signals another group that got the same id.
type guard struct {
	pipes   [2][2]int
	open    bool
	watcher *watcher // replaces the pipes if the kernel does not support F_SETSIG
}

// newGuard returns a guard that is not armed. It uses plain descriptors because an
// *os.File is closed when it is no longer referenced.
func newGuard() (guard, error) {
	var g guard
	for i := range g.pipes {
		if err := syscall.Pipe2(g.pipes[i][:], syscall.O_CLOEXEC); err != nil {
			closePipes(g.pipes[:i])
			return guard{}, os.NewSyscallError("pipe2", err)
		}
	}
	g.open = true
	return g, nil
}

// arm sets the guard to the group pgid, which must exist. If the kernel does not
// support it, as in some sandboxes, arm starts a watcher instead.
func (g *guard) arm(pgid int) error {
	err := g.armPipes(pgid)
	if err == nil {
		return nil
	}
	w, watchErr := watchGroup(pgid)
	if watchErr != nil {
		return err
	}
	g.watcher = w
	return nil
}

func (g *guard) armPipes(pgid int) error {
	for _, p := range g.pipes {
		for _, fd := range p {
			for _, c := range []struct {
				name     string
				cmd, arg int
			}{
				{"fcntl F_SETOWN", unix.F_SETOWN, -pgid},
				{"fcntl F_SETSIG", unix.F_SETSIG, int(unix.SIGKILL)},
				{"fcntl F_SETFL O_ASYNC", unix.F_SETFL, unix.O_ASYNC},
			} {
				if _, err := unix.FcntlInt(uintptr(fd), c.cmd, c.arg); err != nil {
					return os.NewSyscallError(c.name, err)
				}
			}
		}
	}
	return nil
}

// close closes the guard. If the pipes are armed, the kernel then signals the group.
func (g *guard) close() {
	g.watcher.dismiss()
	g.watcher = nil
	if g.open {
		g.open = false
		closePipes(g.pipes[:])
	}
}

func closePipes(pipes [][2]int) {
	for _, p := range pipes {
		syscall.Close(p[0])
		syscall.Close(p[1])
	}
}
