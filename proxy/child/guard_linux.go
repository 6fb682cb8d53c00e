package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A guard makes the kernel send SIGKILL to a process group when this process
// ends, whatever ends it. It is a pipe into which nothing is written, both ends
// ours and neither inherited. The read end is set to send the signal when
// something happens to it (O_ASYNC, F_SETSIG, F_SETOWN), and what happens to it
// is that the last write end is closed, which the kernel does for us when it
// takes our descriptors away.
//
// For that the read end must outlive the write end by a moment, so the order in
// which the kernel closes the descriptors of a dead process matters. It goes
// through them from the lowest and puts off the release of each to a list that
// it works off from the last (since Linux 4.3): the higher descriptor goes
// first. As no manual promises that, there are two pipes, one for each order. A
// group that gets SIGKILL twice is no worse off.
//
// Leaving the read end to the child to hold would not do: the child may close
// it, and may be dead of PR_SET_PDEATHSIG before our descriptors are closed.
//
// The kernel keeps a reference to the group and not its number, so a guard can
// never hit another group that got the same id.
type guard struct {
	pipes   [2]guardPipe
	open    bool
	watcher *watcher // in place of the pipes, where the kernel does not know F_SETSIG
}

type guardPipe struct{ r, w int }

// newGuard returns a guard that guards nobody yet. Its descriptors are not
// *os.Files, which close when they are no longer referenced.
func newGuard() (guard, error) {
	var g guard
	for i := range g.pipes {
		var fds [2]int
		if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
			return guard{}, closing(g.pipes[:i], os.NewSyscallError("pipe2", err))
		}
		g.pipes[i] = guardPipe{r: fds[0], w: fds[1]}
	}
	err := raise(&g.pipes[0].w, g.pipes[0].r)
	if err == nil {
		err = raise(&g.pipes[1].r, g.pipes[1].w)
	}
	if err != nil {
		return guard{}, closing(g.pipes[:], err)
	}
	g.open = true
	return g, nil
}

// raise moves a descriptor above another.
func raise(fd *int, above int) error {
	if *fd > above {
		return nil
	}
	higher, err := unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, above+1)
	if err != nil {
		return os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
	}
	syscall.Close(*fd)
	*fd = higher
	return nil
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
		for _, c := range []struct {
			name     string
			cmd, arg int
		}{
			{"fcntl F_SETOWN", unix.F_SETOWN, -pgid},
			{"fcntl F_SETSIG", unix.F_SETSIG, int(unix.SIGKILL)},
			{"fcntl F_SETFL O_ASYNC", unix.F_SETFL, unix.O_ASYNC},
		} {
			if _, err := unix.FcntlInt(uintptr(p.r), c.cmd, c.arg); err != nil {
				return os.NewSyscallError(c.name, err)
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
		_ = closing(g.pipes[:], nil)
	}
}

// closing closes pipes, write ends first, and returns err.
func closing(pipes []guardPipe, err error) error {
	for _, p := range pipes {
		syscall.Close(p.w)
		syscall.Close(p.r)
	}
	return err
}
