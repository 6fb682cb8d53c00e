package child

import "os"

// pipes are the pipes to stdin and from stdout and stderr. They are os.Pipe
// pairs of ours: those of os/exec are closed by its Wait, under a reader that
// has not had the last answers yet. Our ends are non-blocking and polled, so a
// Close or a deadline wakes who is blocked on them; O_NONBLOCK belongs to one
// end, and the process gets its ends blocking, as it expects them.
type pipes struct {
	ours, theirs [3]*os.File // by descriptor of the process
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

// closeAll closes files; (*os.File)(nil).Close is an error and no fault.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		f.Close()
	}
}
