package child

import (
	"errors"
	"io"
	"os"
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
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, startError(o, path, err)
	}
	defer null.Close()
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, startError(o, path, err)
	}
	defer theirIn.Close()
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(startError(o, path, err), ourIn.Close())
	}
	defer theirOut.Close()
	p, err := os.StartProcess(path, o.Argv, &os.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: []*os.File{theirIn, theirOut, null}, Sys: detached(),
	})
	if err != nil {
		return nil, errors.Join(startError(o, path, err), ourIn.Close(), ourOut.Close())
	}
	go func() { _, _ = p.Wait() }()
	go func() {
		_, _ = ourIn.Write(input) // a process that does not read says so by its stdout
		_ = ourIn.Close()
	}()
	return ourOut, nil
}
