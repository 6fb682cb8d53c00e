//go:build unix

package child

import (
	"cmp"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A group is the direct child and what it starts: a process group with the child's
// id.
//
// It uses syscall and not os.StartProcess, which starts another process on its
// first use, to find out whether pidfds work.
type group struct {
	pid      int
	guard    guard
	guardErr error

	mu    sync.Mutex
	ended bool // the group is empty; its id may be reused
}

// start starts the direct child. The calling goroutine must keep its thread
// until reap has returned.
func (g *group) start(path string, o Options, files [3]*os.File) error {
	// Make the guard before the fork: the child waits while this thread works after it.
	guard, guardErr := newGuard()
	pid, resume, err := forkHalted(path, o, &syscall.ProcAttr{
		Dir:   o.Dir,
		Env:   o.Env,
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()}, // Fd sets them to blocking mode
		Sys:   attributes(),
	})
	if err != nil {
		guard.close()
		return err
	}
	if guardErr == nil {
		guardErr = guard.arm(pid)
	}
	if resume != nil {
		resume()
	}
	g.pid, g.guard, g.guardErr = pid, guard, guardErr
	return nil
}

// reap waits for the direct child to end, and returns the fields of its [Exit]. If the group is then empty, a signal
// could reach another group with the same id until alive detects that. An id is
// reused only after all others, which does not happen in these microseconds.
func (g *group) reap() (code int, sig syscall.Signal) {
	await(g.pid)
	var ws syscall.WaitStatus
	_, err := syscall.Wait4(g.pid, &ws, 0, nil)
	for err == syscall.EINTR {
		_, err = syscall.Wait4(g.pid, &ws, 0, nil)
	}
	switch {
	case err != nil:
		return -1, 0
	case ws.Signaled():
		return -1, ws.Signal()
	}
	return ws.ExitStatus(), 0
}

// alive reports whether a process that this one may signal runs in the group. Call
// it after reap.
func (g *group) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.ended = syscall.Kill(-g.pid, 0) != nil || !anyRuns(g.pid)
	return !g.ended
}

// signal sends a signal to all processes of the group, and reports whether there
// were any.
func (g *group) signal(sig syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.ended && syscall.Kill(-g.pid, sig) == nil
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// release closes the guard, which kills the processes that are still in the group.
func (g *group) release() {
	g.close()
	for t := time.Now().Add(adoptedTime); g.reapAdopted() && time.Now().Before(t); {
		time.Sleep(time.Millisecond)
	}
}

func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.guard.close()
}

// adoptedTime is how long release waits at most until adopted processes, which were killed, have ended.
const adoptedTime = time.Second

// reapAdopted waits for the adopted processes of the group that have ended, and reports whether
// others are still running. A process whose parent has ended is adopted by process 1, which in a
// container can be attache. Without a wait, it stays in the process table as a zombie. The kernel
// does not reuse the id of a group that still has a process, so no other group is affected.
func (g *group) reapAdopted() bool {
	for {
		switch pid, err := syscall.Wait4(-g.pid, nil, syscall.WNOHANG, nil); {
		case err == syscall.EINTR, pid > 0:
		default:
			return err == nil
		}
	}
}

// detached returns the attributes of a process that leads a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// readNow reads what a non-blocking descriptor contains now. It returns 0 at the
// end, and a negative number if there is nothing to read.
func readNow(fd uintptr, b []byte) int {
	n, err := syscall.Read(int(fd), b)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), b)
	}
	return n
}

func signalName(sig syscall.Signal) string {
	return cmp.Or(unix.SignalName(sig), strconv.Itoa(int(sig)))
}
