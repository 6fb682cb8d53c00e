package child

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"time"
)

// stuck is how long a process that got SIGKILL may take to end. One that takes
// longer hangs in the kernel, on a dead network mount for instance, or is one we
// may not signal.
const stuck = time.Second

// A signalled is the first signal that was passed on, and when.
type signalled struct {
	sig os.Signal
	at  time.Time
}

// Stop ends the process and waits until nothing of it is left: it goes up the
// ladder of the package comment, which takes little more than Grace plus
// TermGrace. When ctx ends the rest of the ladder is skipped and the group gets SIGKILL at
// once. Stopping a process that is being stopped or has ended waits for its
// end and returns the same.
func (p *Process) Stop(ctx context.Context) Exit {
	p.shutDown()
	select {
	case <-p.over:
	case <-ctx.Done():
		p.kill()
	}
	return p.Wait()
}

// echo is for how long the same signal counts as the one before: a terminal sends it
// to us and to the launcher we were started by (npx, for one), which passes it on.
const echo = 200 * time.Millisecond

// Signal passes on a signal this process got: the group gets it, its stdin is
// closed, and the ladder follows as in Stop. The second signal, whichever it
// is, is SIGKILL at once, unless it is an echo of the first. Signal does not wait;
// see [Process.Wait].
func (p *Process) Signal(sig os.Signal) {
	first := &signalled{sig, time.Now()}
	if !p.signalled.CompareAndSwap(nil, first) {
		if first = p.signalled.Load(); first.sig != sig || time.Since(first.at) > echo {
			p.shutDown()
			p.kill()
		}
		return
	}
	s, ok := sig.(syscall.Signal)
	if !ok {
		s = syscall.SIGTERM
	}
	p.group.signal(s)
	p.shutDown()
}

// shutDown closes stdin and lets the ladder begin, if it has not.
func (p *Process) shutDown() {
	p.CloseStdin()
	p.begin.Do(func() {
		p.mu.Lock()
		p.stopBy = time.Now().Add(p.opt.Grace + p.opt.TermGrace)
		p.mu.Unlock()
		go p.climb()
	})
}

// climb goes up the ladder until the process has ended. It ends the direct
// child; run ends what is left of the group.
func (p *Process) climb() {
	if p.outlives(p.opt.Grace, p.killed) &&
		(!p.group.signal(syscall.SIGTERM) || p.outlives(p.opt.TermGrace, p.killed)) {
		p.kill()
	}
	if p.outlives(stuck, nil) {
		p.abandon()
	}
}

// abandon stops waiting for a process that nothing ends, so that we can end. If
// it ever ends, run does the rest.
func (p *Process) abandon() {
	p.settle(Exit{Code: -1})
	p.stdout.cut(time.Now())
	p.stderr.finish(time.Now())
	p.end()
}

// outlives reports whether the direct child is still there after d. It returns
// false as soon as it is not, or quit is closed.
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

// kill sends SIGKILL to the group and ends all patience.
func (p *Process) kill() {
	p.kills.Do(func() {
		p.group.kill()
		close(p.killed)
	})
}

// run starts the process, stays with it until nothing of it is left, and
// releases what belonged to it. Without a Forker it keeps its thread: PR_SET_PDEATHSIG
// fires when the thread that forked ends, and the runtime may end a thread that no
// goroutine holds.
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
	p.settle(p.group.reap())
	p.CloseStdin()
	p.endGroup()
	p.stdout.cut(p.until(p.opt.Drain))
	p.stderr.finish(p.until(p.opt.Drain))
	p.end()
}

// settle makes exit the end of the process, unless there is one.
func (p *Process) settle(exit Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	p.reaped, p.exit = true, exit
	close(p.done)
}

func (p *Process) end() { p.ends.Do(func() { close(p.over) }) }

// endGroup ends what the direct child left behind in its group.
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

// groupEnds waits for the group to be empty, and reports false at t, or when
// nothing is to be waited for. The group cannot be waited for as a child can,
// so this is the one place that looks again and again, and it is off the
// ordinary way.
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

// until is when a wait of d ends that begins now: with the ladder at the
// latest, and at once after SIGKILL.
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
