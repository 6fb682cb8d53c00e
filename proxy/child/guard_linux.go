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
// descriptors. The end of a pipe that it closes first leaves the other end without a
// peer, and the other end signals. No manual says which end the kernel closes first,
// so both are set.
//
// Each pipe signals once, and the group needs two signals. Linux 6.18 signals the
// members of a group one after another, the youngest first. If an older member forks
// in that time, the new process gets no signal. The second signal reaches it, unless
// it forks while that one is sent.
//
// Leaving an end to the child to hold would not do: the child may close
// it, and may be dead of PR_SET_PDEATHSIG before our descriptors are closed.
//
// The kernel keeps a reference to the group and not its number, so a guard can
// never hit another group that got the same id.
type guard struct {
	pipes   [2][2]int
	open    bool
	watcher *watcher // in place of the pipes, where the kernel does not know F_SETSIG
}

// newGuard returns a guard that guards nobody yet. Its descriptors are not
// *os.Files, which close when they are no longer referenced.
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

// arm makes the guard one of the group pgid, which must exist. Where the kernel
// does not do what is asked of it, as in some sandboxes, a watcher takes its place.
func (g *guard) arm(pgid int) error {
	err := g.armPipes(pgid)
	if err == nil {
		return nil
	}
	w, failed := watchGroup(pgid)
	if failed != nil {
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

// close sets an armed guard off.
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
