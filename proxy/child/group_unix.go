//go:build unix

package child

import (
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A group is the direct child and what it starts: a process group whose id is
// the child's.
//
// It uses syscall and not os.StartProcess, which on first use in a process
// starts another one to find out whether pidfds work.
type group struct {
	pid      int
	guard    guard
	guardErr error

	mu    sync.Mutex
	ended bool // nobody is in it; its id may become another's
}

// start starts the direct child. The calling goroutine must keep its thread
// until reap has returned.
func (g *group) start(path string, o Options, files [3]*os.File) error {
	// Before the fork: the child has to wait for what is done behind it.
	guard, guardErr := newGuard()
	pid, resume, err := forkHalted(path, o, &syscall.ProcAttr{
		Dir:   o.Dir,
		Env:   o.Env,
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()}, // Fd makes them blocking
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

// reap waits for the direct child to end. A signal sent from now on could go to
// another group of the same id if this one is empty, until alive finds that
// out; ids go round, so in these microseconds all others would have to be used.
func (g *group) reap() Exit {
	await(g.pid)
	var ws syscall.WaitStatus
	_, err := syscall.Wait4(g.pid, &ws, 0, nil)
	for err == syscall.EINTR {
		_, err = syscall.Wait4(g.pid, &ws, 0, nil)
	}
	switch {
	case err != nil:
		return Exit{Code: -1}
	case ws.Signaled():
		return Exit{Code: -1, Signal: ws.Signal()}
	}
	return Exit{Code: ws.ExitStatus()}
}

// alive reports whether anybody we may signal runs in the group. It is for the
// time after reap.
func (g *group) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.ended = syscall.Kill(-g.pid, 0) != nil || !anyRuns(g.pid)
	return !g.ended
}

// signal sends a signal to everybody in the group, and reports whether anybody
// got it.
func (g *group) signal(sig syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.ended && syscall.Kill(-g.pid, sig) == nil
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// release gives up the group. The guard goes off with it and ends whoever is
// still there.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.guard.close()
}

// readNow reads what a non-blocking descriptor holds now: 0 at the end, less if
// there is nothing.
func readNow(fd uintptr, b []byte) int {
	n, err := syscall.Read(int(fd), b)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), b)
	}
	return n
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return strconv.Itoa(int(sig))
}
