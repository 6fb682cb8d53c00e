package child

import (
	"os"
	"syscall"
)

// pipes are the pipes for stdin, stdout and stderr. os/exec would close its pipes
// in Wait, before a reader has read the last answers, so these are made by
// os.Pipe. The ends of this process are non-blocking and polled, so a Close or a
// deadline unblocks a Read or Write. O_NONBLOCK is a property of one end, and the
// ends of the child are blocking, as it expects.
type pipes struct {
	ours, theirs [3]*os.File // indexed by the descriptor in the child
}

func openPipes() (*pipes, error) {
	p := new(pipes)
	for fd := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, err
		}
		p.ours[fd], p.theirs[fd] = r, w
		if fd == 0 {
			p.ours[fd], p.theirs[fd] = w, r
		}
	}
	return p, nil
}

func (p *pipes) closeOurs()   { closeAll(p.ours) }
func (p *pipes) closeTheirs() { closeAll(p.theirs) }

// closeAll closes files, some of which may be nil.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// An Input is the write end of the process's stdin.
type Input struct {
	*os.File

	// Used by TryWrite, which only Linux has.
	conn  syscall.RawConn
	try   func(fd uintptr) bool
	bytes []byte
	n     int
	err   error
}
