// Package child runs the wrapped process: it starts it, ends it, copies its
// stderr, tells how it ended, and leaves nothing of it behind.
//
//	p, err := child.Start(ctx, child.Options{Argv: argv, Env: env, Stderr: stderr})
//	if err != nil {
//		return err // a *StartError; its Status is 127 or 126
//	}
//	go feed(p.Stdin())
//	read(p.Stdout())    // to io.EOF, or the last answers are lost
//	exit := p.Wait()    // reaped, its group ended, its stderr complete
//	return exit.Status()
//
// # The end of a process
//
// [Process.Stop] goes up a ladder, and stops climbing when the process has
// ended: its stdin is closed at once, after [Options.Grace] its process group
// gets SIGTERM, after [Options.TermGrace] SIGKILL. [Process.Signal] passes a
// signal on and then goes the same way; a second signal is SIGKILL at once, but for
// the same one right behind the first, which a launcher passed on.
// However the process ended, what is left of its group then gets SIGTERM, a
// short grace and SIGKILL, so that a launcher such as npx, which puts a shell
// and the server behind itself, leaves neither. A process that went on to hold
// stdout or stderr open is waited for no longer than [Options.Drain]. No wait
// of this package is without an end, whatever the process does.
//
// # When this process is killed
//
// No code of ours runs after SIGKILL, so the kernel has to do it.
//
// On Linux two things are arranged before the child runs its first instruction (see
// halt_linux.go). Neither needs a helper process or shows in the child, which inherits
// descriptors 0, 1 and 2 from us and no other of ours:
//
//   - PR_SET_PDEATHSIG: the direct child gets SIGKILL when the thread that
//     forked it ends. That thread is kept for as long as the child lives; a [Forker]
//     is one for many children.
//   - Pipes that only this process has. When it ends, also by SIGKILL or a crash, the
//     kernel closes them and sends SIGKILL to the child's group (F_SETOWN, F_SETSIG,
//     O_ASYNC). See guard_linux.go.
//
// Three kinds of processes are not covered: a process that left the group (setsid, a
// daemon); one that changed its user, which we may not signal; and one whose parent
// was itself forked in the microseconds in which the group is signalled. A child that
// must not be traced while it starts (its file gives it privileges, or system calls are
// filtered, as in containers) runs a few microseconds before the pipes are armed; what it
// has started by then is not covered.
//
// A sandbox may not support F_SETSIG, and macOS and the BSDs do not have it. There, a shell
// of ours watches a pipe in a session of its own and sends
// SIGKILL to the group when we are gone; see watcher.go. On FreeBSD the kernel ends
// the direct child besides. What that does not cover, apart from the above:
// somebody who kills the watcher too, and the millisecond between the child's start
// and the watcher's. Without /bin/sh there is none, which [Process.GuardErr] tells;
// then the group is left to what it does when its stdin ends.
//
// On Windows the child is started in a job object that ends with our last handle to
// it, so all of it dies with us, from the first instruction on, and nothing in it
// can leave the job. GuardErr tells where there is none, as within a job of
// somebody else's that admits no other. There is no SIGTERM there: the ladder goes
// from the end of stdin to the end of the job. A batch file such as npx.cmd is run
// with a line that is quoted for the command interpreter; see batch.go.
//
// # What it does not do
//
// It puts no shell before the command, does not restart, does not look at a byte of stdin and
// stdout, and logs nothing: a log that blocks must not hold up a ladder. What is
// worth a log line is in [Exit], [Process.GuardErr] and [Process.Dropped].
package child
