//go:build unix

package child

import (
	"os"
	"strconv"
	"syscall"
)

// A watcher kills a process group when this process ends, on systems where the
// kernel cannot do it. It is a shell that reads from a pipe to which only this
// process holds the write end. The kernel closes that end however this process ends.
//
// It runs in a session of its own, so that neither a terminal nor a signal to this
// process's group reaches it, and inherits no other descriptor than the pipe.
type watcher struct {
	pid  int
	pipe *os.File // the write end; nothing is written to it
}

// watcherScript is the script of the shell. It contains no foreign text: its only
// argument is a number. Every shell accepts the signal before the group; dash does
// not accept "--" there.
const watcherScript = `read -r _; kill -KILL "-$1"`

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
	pid, err := syscall.ForkExec(shell, []string{"sh", "-c", watcherScript, "attache-watcher", strconv.Itoa(pgid)}, &syscall.ProcAttr{
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

// dismiss kills the watcher before it kills the group, whose id may belong to another
// group by then. The watcher's own id cannot be reused before dismiss reaps it.
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
