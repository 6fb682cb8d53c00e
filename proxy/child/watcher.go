//go:build unix

package child

import (
	"os"
	"strconv"
	"syscall"
)

// A watcher ends a process group when this process ends, where the kernel cannot
// be asked to. It is a shell that waits for the end of a pipe whose only writer is
// this process: the kernel closes that end whatever ends us.
//
// It is in a session of its own, so that neither a terminal nor a process that signals
// our group reaches it, and it holds nothing of ours but the pipe.
type watcher struct {
	pid  int
	pipe *os.File // the write end; nothing is written
}

// watching is the shell's script. No word of it is anybody else's: its one
// argument is a number. The signal stands before the group, which every shell
// takes; dash takes no "--" there.
const watching = `read -r _; kill -KILL "-$1"`

// watchGroup starts a watcher of the group pgid, which must exist.
func watchGroup(pgid int) (*watcher, error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const shell = "/bin/sh"
	pid, err := syscall.ForkExec(shell, []string{"sh", "-c", watching, "attache-watcher", strconv.Itoa(pgid)}, &syscall.ProcAttr{
		Dir:   "/",
		Files: []uintptr{r.Fd(), null.Fd(), null.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil, &os.PathError{Op: "start", Path: shell, Err: err}
	}
	return &watcher{pid, w}, nil
}

// dismiss ends the watcher, which then ends nobody: by the time it could, the id of
// the group may be another's. It is our child and not reaped before, so its own id
// is not.
func (w *watcher) dismiss() {
	if w == nil {
		return
	}
	_ = syscall.Kill(w.pid, syscall.SIGKILL)
	for {
		if _, err := syscall.Wait4(w.pid, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	w.pipe.Close()
}
