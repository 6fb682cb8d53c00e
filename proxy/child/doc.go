// Package child runs the wrapped process: it starts and stops the process, copies its
// stderr, reports how it ended, and ends everything that it started.
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
// [Process.Stop] takes a ladder of steps until the process has ended: it closes stdin
// at once, sends SIGTERM to the process group after [Options.Grace], and SIGKILL after
// [Options.TermGrace]. [Process.Signal] forwards a signal and then takes the same steps.
// A second signal is turned into SIGKILL at once, unless it is the same signal again
// within a moment: a launcher may have forwarded it too.
//
// After the process has ended, for whatever reason, the rest of its group gets SIGTERM, a
// short grace and SIGKILL. So a launcher such as npx, which starts a shell and the server,
// leaves neither of them. If another process still holds stdout or stderr open, this
// package waits for it no longer than [Options.Drain]. Every wait of this package has a
// limit, whatever the process does.
//
// # When this process is killed
//
// No code of this process runs after SIGKILL, so the kernel has to end the child.
//
// On Linux two things are arranged before the child runs its first instruction (see
// halt_linux.go). Neither needs a helper process or is visible in the child, which inherits
// descriptors 0, 1 and 2 and no other:
//
//   - PR_SET_PDEATHSIG: the direct child gets SIGKILL when the thread that
//     forked it ends. That thread is kept for as long as the child lives; a [Forker]
//     is one thread for many children.
//   - Pipes that only this process holds. When it ends, also by SIGKILL or a crash, the
//     kernel closes them and sends SIGKILL to the child's group (F_SETOWN, F_SETSIG,
//     O_ASYNC). See guard_linux.go.
//
// Three kinds of processes are not covered: a process that left the group (setsid, a
// daemon); one that changed its user, so that this process may not signal it; and one whose
// parent was itself forked in the microseconds in which the group is signalled. A child that
// must not be traced while it starts (its file gives it privileges, or system calls are
// filtered, as in containers) runs a few microseconds before the pipes are armed. What it
// starts in that time is not covered.
//
// Some sandboxes do not support F_SETSIG, and macOS and the BSDs do not have it. There, a
// shell in a session of its own watches a pipe and sends SIGKILL to the group when this
// process is gone; see watcher.go. On FreeBSD the kernel also ends the direct child. In
// addition to the cases above, this does not cover a watcher that is killed too, nor the
// millisecond between the start of the child and the start of the watcher. Without /bin/sh
// there is no watcher, which [Process.GuardErr] reports; then the group ends only if it
// ends by itself when its stdin ends.
//
// On Windows the child is started in a job object that ends with this process's last handle
// to it, so the whole job ends with this process, and no process in it can leave it. GuardErr
// reports if there is no job, for instance because this process is itself in a job that allows
// no other. Windows has no SIGTERM: the ladder goes from the end of stdin directly to the end
// of the job. A batch file such as npx.cmd is run with a line that is quoted for the command
// interpreter; see batch.go.
//
// # What it does not do
//
// It runs no shell before the command, restarts nothing, and never looks at the bytes of
// stdin and stdout. It also logs nothing, because a log that blocks must not delay the end
// of a process. [Exit], [Process.GuardErr] and [Process.Dropped] return what is worth logging.
package child
