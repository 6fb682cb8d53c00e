package child

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
)

// StartDetached starts a command that outlives this process and whoever ends its group: it
// leads a session of its own. It gets input by stdin, and has to close its stdout when it has
// said what the caller waits for; stdout returns that to its end. It has no stderr.
//
// The caller reads stdout to its end or closes it. The process is reaped in the background.
func StartDetached(o Options, input []byte) (stdout io.ReadCloser, err error) {
	path, err := findCommand(o)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := os.Pipe() // that of os/exec would be closed when the process has ended
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
	go func() { _ = c.Wait() }() // a process that does not read its input says so by its stdout
	return ours, nil
}
