package child

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
)

// StartDetached starts a command in a new session, so that it outlives this process and a
// signal to its group. The command reads input from stdin, and must close its stdout after the
// output that the caller waits for. It has no stderr.
//
// The caller must read stdout to its end or close it. The process is reaped in the background.
func StartDetached(o Options, input []byte) (stdout io.ReadCloser, err error) {
	path, err := findCommand(o)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := os.Pipe() // os/exec would close its own pipe when the process ends
	if err != nil {
		return nil, startError(o, path, err)
	}
	defer theirs.Close()
	c := &exec.Cmd{
		Path: path, Args: o.Argv, Env: o.Env, Dir: o.Dir, Stdin: bytes.NewReader(input), Stdout: theirs, SysProcAttr: detached(),
	}
	if err := c.Start(); err != nil {
		return nil, errors.Join(startError(o, path, err), ours.Close())
	}
	go func() { _ = c.Wait() }() // the caller learns of a failure from stdout
	return ours, nil
}
