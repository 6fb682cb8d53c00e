package child

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// leftLimit bounds how many bytes are read after the cut: the size of the largest
// pipe of an unprivileged process on Linux. Without it, a process that left the
// group could keep the reader busy for ever.
const leftLimit = 1 << 20

// An Output is the read end of the process's stdout or stderr. It ends with
// io.EOF when all writers have closed it, or when it is cut, [Options.Drain] after
// the process ended. A cut loses nothing that was already written: Read returns
// what is in the pipe before io.EOF, even if it is called much later, because the
// reader may be waiting for a slow client.
//
// An Output is for one reader. Reading to the end closes it.
type Output struct {
	file *os.File
	left int // bytes that may still be read after the cut
}

func newOutput(f *os.File) *Output { return &Output{file: f, left: leftLimit} }

// Read reads up to len(b) bytes. Its error is io.EOF at the end and
// os.ErrClosed after Close.
func (o *Output) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = o.readLeft(b)
	}
	if err != nil {
		o.file.Close()
	}
	return n, err
}

// Close stops reading before the end: a process that goes on writing gets EPIPE.
// It unblocks a Read. It is needed only if Read has not reached the end.
func (o *Output) Close() error { return o.file.Close() }

// SyscallConn returns the raw connection of the descriptor, which is non-blocking
// and polled.
func (o *Output) SyscallConn() (syscall.RawConn, error) { return o.file.SyscallConn() }

// cut stops waiting for more output at t. An output without deadlines, as on
// Windows, ends only when its writers close it.
func (o *Output) cut(t time.Time) { _ = o.file.SetReadDeadline(t) }

// readLeft reads what is in the pipe now, after the deadline. An empty pipe is the
// end.
func (o *Output) readLeft(b []byte) (int, error) {
	b = b[:min(len(b), o.left)]
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	if err := conn.Control(func(fd uintptr) { n = readNow(fd, b) }); err != nil {
		return 0, err
	}
	if n <= 0 {
		return 0, io.EOF
	}
	o.left -= n
	return n, nil
}
