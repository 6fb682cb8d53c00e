package child

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"time"
)

// stuck is how long a process may take to end after SIGKILL. A process that takes
// longer hangs in the kernel, for instance on a dead network mount, or is one
// that this process may not signal.
const stuck = time.Second

// A forwardedSignal is the first signal that was forwarded.
type forwardedSignal struct {
	sig os.Signal
	at  time.Time
}

// Stop ends the process and its group and waits until both are gone. It takes the
// steps in the package comment, in little more than Grace plus TermGrace. When
// ctx is done, the remaining steps are skipped and the group gets SIGKILL at once.
// If the process is already being stopped or has ended, Stop only waits and
// returns the same Exit.
func (p *Process) Stop(ctx context.Context) Exit {
	p.shutDown()
	select {
	case <-p.over:
	case <-ctx.Done():
		p.kill()
	}
	return p.Wait()
}

// echo is how long the same signal counts as a repetition of the first one. A
// terminal sends a signal both to this process and to the launcher that started
// it (such as npx), and the launcher forwards it too.
const echo = 200 * time.Millisecond

// Signal forwards a signal that this process received to the group, closes
// stdin, and goes on as Stop does. A second signal of any kind becomes SIGKILL at
// once, unless it is an echo of the first. Signal does not wait; see
// [Process.Wait].
func (p *Process) Signal(sig os.Signal) {
	first := &forwardedSignal{sig, time.Now()}
	if !p.signal.CompareAndSwap(nil, first) {
		if first = p.signal.Load(); first.sig != sig || time.Since(first.at) > echo {
			p.shutDown()
			p.kill()
		}
		return
	}
	s, ok := sig.(syscall.Signal)
	if !ok { // os.Signal may be any type, but the kernel knows only these
		s = syscall.SIGTERM
	}
	p.group.signal(s)
	p.shutDown()
}

// shutDown starts the ladder, if it was not started yet, and closes stdin. The ladder starts first: on
// Windows, the Close waits for a Write that begins at the same moment, perhaps until the ladder ends it.
func (p *Process) shutDown() {
	p.stopOnce.Do(func() {
		p.mu.Lock()
		p.stopBy = time.Now().Add(p.opt.Grace + p.opt.TermGrace)
		p.mu.Unlock()
		go p.climb()
	})
	p.CloseStdin()
}

// climb takes the steps of the ladder until the direct child has ended. run ends
// the rest of the group.
func (p *Process) climb() {
	// Where nothing in the group could get SIGTERM, as on Windows, there is no use in waiting for it.
	if p.outlives(p.opt.Grace, p.killed) &&
		(!p.group.signal(syscall.SIGTERM) || p.outlives(p.opt.TermGrace, p.killed)) {
		p.kill()
	}
	if p.outlives(stuck, nil) { // false at once if the child has ended above
		p.abandon()
	}
}

// abandon stops waiting for a process that even SIGKILL did not end, so that this
// process can end. If the process does end later, run does the rest.
func (p *Process) abandon() {
	p.settle(Exit{Code: -1})
	p.stdout.cut(time.Now())
	p.stderr.finish(time.Now())
	p.end()
}

// outlives reports whether the direct child still runs after d. It returns false
// as soon as the child has ended or quit is closed.
func (p *Process) outlives(d time.Duration, quit <-chan struct{}) bool {
	select {
	case <-p.done:
		return false
	case <-quit:
		return false
	case <-time.After(d):
		return true
	}
}

// kill sends SIGKILL to the group and ends all waits for it.
func (p *Process) kill() {
	p.killOnce.Do(func() {
		p.group.kill()
		close(p.killed)
	})
}

// run starts the process, waits until the process and its group have ended, and
// releases their resources. Without a Forker it keeps its thread: PR_SET_PDEATHSIG
// fires when the thread that forked ends, and the runtime may end a thread that no
// goroutine is locked to.
func (p *Process) run(ctx context.Context, pipes *pipes, started chan<- error) {
	var err error
	fork := func() error { return p.group.start(p.path, p.opt, pipes.theirs) }
	if p.opt.Forker != nil {
		err = p.opt.Forker.do(fork)
	} else {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err = fork()
	}
	started <- err
	if err != nil {
		return
	}
	unhook := context.AfterFunc(ctx, p.shutDown)
	defer unhook()
	code, sig := p.group.reap()
	p.settle(Exit{Code: code, Signal: sig})
	p.CloseStdin() // what is left in the group may still hold the other end, and block a write
	p.endGroup()
	p.stdout.cut(p.until(p.opt.Drain))
	p.stderr.finish(p.until(p.opt.Drain))
	p.end()
}

// settle sets how the process ended, unless that is already set.
func (p *Process) settle(exit Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	p.reaped, p.exit = true, exit
	close(p.done)
}

func (p *Process) end() { p.overOnce.Do(func() { close(p.over) }) }

// endGroup ends the processes that the direct child left in its group.
func (p *Process) endGroup() {
	defer p.group.release()
	if !p.group.alive() {
		return
	}
	p.mu.Lock()
	p.exit.Leftover = true
	p.mu.Unlock()
	p.group.signal(syscall.SIGTERM)
	if !p.groupEnds(p.until(p.opt.TermGrace)) {
		p.group.kill()
	}
}

// groupEnds waits for the group to become empty. It returns false at t, or when
// the group was killed. A process group cannot be waited for like a child, so
// this polls; it is needed only after a child that left processes behind.
func (p *Process) groupEnds(t time.Time) bool {
	const longest = 32 * time.Millisecond
	for pause := time.Millisecond; p.group.alive(); pause = min(2*pause, longest) {
		left := time.Until(t)
		if left <= 0 {
			return false
		}
		select {
		case <-p.killed:
			return false
		case <-time.After(min(pause, left)):
		}
	}
	return true
}

// until returns when a wait of d that starts now ends: no later than the ladder,
// and at once after SIGKILL.
func (p *Process) until(d time.Duration) time.Time {
	now := time.Now()
	select {
	case <-p.killed:
		return now
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := now.Add(d)
	if !p.stopBy.IsZero() && p.stopBy.Before(t) {
		t = later(p.stopBy, now)
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
